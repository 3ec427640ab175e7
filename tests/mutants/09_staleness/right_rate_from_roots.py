"""Right: the rate by halving, from the roots of the polynomials of all directions."""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    low, high = 0.0, 4.0 / max(curvatures)
    for _ in range(30):
        rate, largest = (low + high) / 2, 0
        for curvature, delay in zip(curvatures, delays):
            p = np.zeros(delay + 2); p[0] = 1; p[1] -= 1; p[-1] += rate * curvature
            largest = max(largest, max(abs(np.roots(p))))
        low, high = (rate, high) if largest <= 1 else (low, rate)
    return np.float64(low)
