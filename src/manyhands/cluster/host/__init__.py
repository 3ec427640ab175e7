"""What a machine gives its ranks: ports, devices, and network namespaces that make it several
machines.
"""
