"""The challenges: their numbers, data and model; a folder for each with its texts and entries."""
