"""All that speaks nbgrader: its settings, its exchange, its gradebook, its pages."""
