"""Each rank has a link to the other nodes for itself.

fails: hierarchical/levels
shows: so their bytes add up
points: 17
"""
# %% grade_id="hierarchical"
def hierarchical_s(nodes, ranks_per_node, n_bytes, inside, between, links_per_node, all_reduce_s):
    latency_s, bytes_per_s = inside
    half_s = (ranks_per_node - 1) * (latency_s + n_bytes / ranks_per_node / bytes_per_s)
    return 2 * half_s + all_reduce_s(nodes, n_bytes / ranks_per_node, *between)
