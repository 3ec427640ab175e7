"""What a machine gives its ranks: ports, devices, and the network namespaces of its nodes."""
