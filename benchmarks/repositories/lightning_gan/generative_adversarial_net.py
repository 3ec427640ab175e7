"""Train a GAN with Lightning: two networks, two optimisers, manual optimisation:
python generative_adversarial_net.py"""

import math
import os
from argparse import ArgumentParser, Namespace

import torch
import torch.nn.functional as F
from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Generator(nn.Module):
    def __init__(self, latent_dim: int = 16, img_shape: tuple = (1, 8, 8)):
        super().__init__()
        self.img_shape = img_shape

        def block(in_feat, out_feat, normalize=True):
            norm = [nn.BatchNorm1d(out_feat, 0.8)] if normalize else []
            return [nn.Linear(in_feat, out_feat), *norm, nn.LeakyReLU(0.2, inplace=True)]

        self.model = nn.Sequential(*block(latent_dim, 32, normalize=False), *block(32, 64),
                                   nn.Linear(64, math.prod(img_shape)), nn.Tanh())

    def forward(self, z):
        return self.model(z).view(z.size(0), *self.img_shape)


class Discriminator(nn.Module):
    def __init__(self, img_shape):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(math.prod(img_shape), 64), nn.LeakyReLU(0.2, inplace=True),
                                   nn.Linear(64, 32), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 1))

    def forward(self, img):
        return self.model(img.flatten(1))


def weights_init(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, 0.0, 0.1)
        nn.init.zeros_(module.bias)


class Images(LightningDataModule):
    """Images of noise with a gradient of brightness, and labels."""

    def __init__(self, batch_size: int = 16):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        draw = torch.Generator().manual_seed(3)
        images = torch.rand(700, 1, 8, 8, generator=draw) * torch.linspace(-1, 1, 8)
        labels = torch.randint(10, (700,), generator=draw)
        self.train, self.val = random_split(TensorDataset(images, labels), [640, 60],
                                            generator=torch.Generator().manual_seed(42))

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, pin_memory=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size)


class GAN(LightningModule):
    def __init__(self, img_shape: tuple = (1, 8, 8), lr: float = 0.0002, b1: float = 0.5, b2: float = 0.999,
                 latent_dim: int = 16):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.generator = Generator(latent_dim=self.hparams.latent_dim, img_shape=img_shape)
        self.discriminator = Discriminator(img_shape=img_shape)
        self.apply(weights_init)
        self.validation_z = torch.randn(8, self.hparams.latent_dim)
        self.save_path = "images"
        os.makedirs(self.save_path, exist_ok=True)

    def forward(self, z):
        return self.generator(z)

    @staticmethod
    def adversarial_loss(y_hat, y):
        return F.binary_cross_entropy_with_logits(y_hat, y)

    def training_step(self, batch, batch_idx):
        imgs, _ = batch
        opt_g, opt_d = self.optimizers()
        z = torch.randn(imgs.shape[0], self.hparams.latent_dim).type_as(imgs)
        valid = torch.ones(imgs.size(0), 1).type_as(imgs)
        fake = torch.zeros(imgs.size(0), 1).type_as(imgs)

        self.toggle_optimizer(opt_g)
        g_loss = self.adversarial_loss(self.discriminator(self(z)), valid)
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()
        self.untoggle_optimizer(opt_g)

        self.toggle_optimizer(opt_d)
        real_loss = self.adversarial_loss(self.discriminator(imgs), valid)
        fake_loss = self.adversarial_loss(self.discriminator(self(z).detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.untoggle_optimizer(opt_d)

        self.log_dict({"d_loss": d_loss, "g_loss": g_loss}, sync_dist=True)

    def configure_optimizers(self):
        lr, betas = self.hparams.lr, (self.hparams.b1, self.hparams.b2)
        opt_g = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=betas)
        opt_d = torch.optim.Adam(self.discriminator.parameters(), lr=lr, betas=betas)
        return opt_g, opt_d

    def validation_step(self, batch, batch_idx):
        pass

    @torch.no_grad()
    def on_validation_epoch_end(self):
        self.generator.eval()
        sample_imgs = self(self.validation_z.type_as(self.generator.model[0].weight))
        if self.trainer.is_global_zero:
            torch.save(sample_imgs, os.path.join(self.save_path, f"epoch_{self.current_epoch}.pt"))
        self.generator.train()


def main(args: Namespace) -> None:
    model = GAN(lr=args.lr, b1=args.b1, b2=args.b2, latent_dim=args.latent_dim)
    trainer = Trainer(accelerator="gpu", devices=2, strategy=DDPStrategy(find_unused_parameters=True), max_epochs=3,
                      logger=False, enable_progress_bar=False, num_sanity_val_steps=0)
    trainer.fit(model, Images())


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.0002, help="adam: learning rate")
    parser.add_argument("--b1", type=float, default=0.5, help="adam: decay of first order momentum of gradient")
    parser.add_argument("--b2", type=float, default=0.999, help="adam: decay of second order momentum of gradient")
    parser.add_argument("--latent_dim", type=int, default=16, help="dimensionality of the latent space")
    main(parser.parse_args())
