"""Convolutions whose channels are distributed over the ranks, with allgather. Each rank sees only its own input channels."""

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import numpy as np

from start import fill, numbers, report


class ParallelConvolution(chainer.Chain):
    def __init__(self, comm, in_channels, out_channels):
        super().__init__()
        self.comm = comm
        self.in_channels = in_channels
        self.add_link("conv", L.Convolution2D(len(self.indices), out_channels // comm.size, 3, pad=1))

    @property
    def indices(self):
        idx = np.arange(self.in_channels)
        return idx[idx % self.comm.size == self.comm.rank]

    def forward(self, x):
        x = x[:, self.indices, :, :]
        y = self.conv(x)
        ys = chainermn.functions.allgather(self.comm, y)
        return F.concat(ys, axis=1)


class Net(chainer.Chain):
    def __init__(self, comm):
        super().__init__()
        self.add_link("conv1", ParallelConvolution(comm, 4, 6))
        self.add_link("conv2", ParallelConvolution(comm, 6, 2))

    def forward(self, x):
        return self.conv2(F.relu(self.conv1(x)))


comm = chainermn.create_communicator("naive")
model = Net(comm)
fill(model)
model.cleargrads()
y = model(numbers("x", 2, 4, 5, 5))
loss = F.mean(y * y)
loss.backward()
report(comm, loss=loss, conv1=model.conv1.conv.W.grad, conv2=model.conv2.conv.b.grad)
