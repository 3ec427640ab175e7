"""How far apart values may be before the clinic calls it a mistake, and how many make one."""

# of a gradient's length, by the type of the weights; a compressed message has 1e-3
GRADIENT_TOLERANCE = {"torch.float64": 1e-7, "torch.float32": 2e-3}
COARSE_TOLERANCE = 5e-2  # of shorter types
# a factor of a gradient's length counts as N, 1 or 1 / N up to so much
FACTOR_TOLERANCE = 0.02
LOSS_FACTOR_TOLERANCE = 1e-4  # factors of a loss that count as the same
# of its length: how near the average of what ranks have learned is to their mean
AVERAGE_TOLERANCE = 1e-2
# what is left by rounding of a gradient of 0, as a part of the whole gradient's length
ROUNDED_GRADIENT = 1e-6
ROUNDED_SLOPE = 1e-3  # also, of a slope at an output of the model

SHARED_ROWS = 0.5  # of a rank's rows, which a different rank has in the same step, in every step
FEW_ROWS = 4  # so many rows that agree in their order are no accident
# of a rank's parameters: a sum of so many counts as the sum of its gradients
MOST_PARAMETERS = 0.5

# parts of a step that are remarked upon
INPUT_SHARE, ASLEEP_DIFFERENCE = 0.3, 0.3
NO_CORE_SHARE = 0.1  # part of the time without a core that is remarked upon
# parts of the time without a core that lead to a warning, and to no prediction
WAITED_SOME, WAITED_MUCH = 0.05, 0.2
# less of the messages' time than this inside backward: they do not overlap with it
OVERLAPPING = 0.05
