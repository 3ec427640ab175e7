"""Between the nodes all ranks take part in one all-reduce.

fails: hierarchical/levels
shows: as many partners as nodes
points: 17
"""
# %% grade_id="hierarchical"
def hierarchical_s(nodes, ranks_per_node, n_bytes, inside, between, links_per_node, all_reduce_s):
    latency_s, bytes_per_s = inside
    half_s = (ranks_per_node - 1) * (latency_s + n_bytes / ranks_per_node / bytes_per_s)
    of_a_link = n_bytes / min(links_per_node, ranks_per_node)
    return 2 * half_s + all_reduce_s(nodes * ranks_per_node, of_a_link, *between)
