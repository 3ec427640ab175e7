"""Right: the rate by halving, from the roots of the polynomial."""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delay):
    low, high = 0.0, 4.0
    for _ in range(30):
        a = (low + high) / 2
        p = np.zeros(delay + 2); p[0] = 1; p[1] -= 1; p[-1] += a
        low, high = (a, high) if max(abs(np.roots(p))) <= 1 else (low, a)
    return np.float64(low / max(curvatures))
