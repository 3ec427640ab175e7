#!/bin/bash
# Start two workers of MultiWorkerMirroredStrategy side by side on one machine, each with half of its GPUs, as if the machine were two nodes:
#
#     bash 07_halves.sh FOLDER        07_train.py keeps its backup in FOLDER
#
# GPUS is an even number of GPUs. Without it, all GPUs are used, except an odd one. On a machine without a GPU, each worker trains on the CPU.
# `python` must be the Python that has TensorFlow.

gpus=${GPUS:-$(nvidia-smi --list-gpus 2> /dev/null | grep -c '^GPU ')}
gpus=$((gpus / 2 * 2)) # with a single GPU, both workers train on the CPU
free="import socket; s = [socket.create_server(('127.0.0.1', 0)) for _ in range(2)]; print(*(each.getsockname()[1] for each in s))"
read -r port_0 port_1 <<< "$(python -c "$free")" # fixed ports would clash with a colleague's

worker() { # worker INDEX FIRST_GPU LAST_GPU OPTION...
    export TF_CONFIG="{\"cluster\": {\"worker\": [\"127.0.0.1:$port_0\", \"127.0.0.1:$port_1\"]}, \"task\": {\"type\": \"worker\", \"index\": $1}}"
    export CUDA_VISIBLE_DEVICES=$(seq -s , "$2" "$3")
    exec python "$(dirname "$0")/07_train.py" "${@:4}"
}

worker 0 0 $((gpus / 2 - 1)) "$@" &
first=$!
worker 1 $((gpus / 2)) $((gpus - 1)) "$@" &
second=$!

trap 'kill $first $second 2> /dev/null' EXIT # if one worker fails before the two have met, the other one would wait forever
wait -n && wait $first && wait $second       # until both have ended, or until one has failed
