"""Gaussian diffusion: the loss of a random time step of each image."""

import torch


class GaussianDiffusion:
    def __init__(self, num_timesteps):
        self.num_timesteps = num_timesteps
        self.alphas_cumprod = torch.cumprod(1 - torch.linspace(1e-3, 0.2, num_timesteps), 0)

    def q_sample(self, x_start, t, noise):
        a = self.alphas_cumprod.to(x_start.device)[t].view(-1, 1, 1, 1)
        return a.sqrt() * x_start + (1 - a).sqrt() * noise

    def training_losses(self, model, x_start, t, model_kwargs=None):
        noise = torch.randn_like(x_start)
        x_t = self.q_sample(x_start, t, noise)
        model_output, model_var_values = torch.split(model(x_t, t, **model_kwargs), x_t.shape[1], dim=1)
        terms = {"mse": mean_flat((noise - model_output) ** 2),
                 "vb": mean_flat((model_var_values - (noise - model_output.detach()) ** 2) ** 2) / 1000}
        terms["loss"] = terms["mse"] + terms["vb"]
        return terms


def mean_flat(tensor):
    return tensor.mean(dim=list(range(1, len(tensor.shape))))


def create_diffusion(diffusion_steps=100):
    return GaussianDiffusion(diffusion_steps)
