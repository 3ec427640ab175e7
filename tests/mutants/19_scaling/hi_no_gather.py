"""Nothing is gathered inside the nodes at the end.

fails: hierarchical/levels
shows: the all-gather inside the nodes is missing
points: 17
"""
# %% grade_id="hierarchical"
def hierarchical_s(nodes, ranks_per_node, n_bytes, inside, between, links_per_node, all_reduce_s):
    latency_s, bytes_per_s = inside
    half_s = (ranks_per_node - 1) * (latency_s + n_bytes / ranks_per_node / bytes_per_s)
    of_a_link = n_bytes / min(links_per_node, ranks_per_node)
    return half_s + all_reduce_s(nodes, of_a_link, *between)
