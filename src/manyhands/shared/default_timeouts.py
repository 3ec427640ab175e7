"""The timeouts that apply where neither an argument nor the environment sets one."""

# After this many seconds, ranks that all wait in communication count as a hang, by backend. NCCL
# gets longer because it makes a communicator in the first call of each group.
HANG_TIMEOUT_S = {"gloo": 10, "nccl": 30}
