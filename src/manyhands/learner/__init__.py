"""The learner's seat: their own copies in `work/`, the page Start_Here, JupyterLab."""
