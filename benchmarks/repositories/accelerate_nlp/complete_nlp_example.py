"""Train a classifier of pairs of sentences with Accelerate, from pretrained weights, with checkpoints:
accelerate launch --num_processes 2 --mixed_precision bf16 complete_nlp_example.py"""

import argparse
import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

MAX_GPU_BATCH_SIZE = 8
EVAL_BATCH_SIZE = 32
VOCABULARY, WIDTH = 100, 32


class Pairs(Dataset):
    """Sequences of tokens, of different lengths, with a label each."""

    def __init__(self, count, seed):
        draw = torch.Generator().manual_seed(seed)
        lengths = torch.randint(6, 24, (count,), generator=draw).tolist()
        self.rows = [torch.randint(1, VOCABULARY, (length,), generator=draw) for length in lengths]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": int(self.rows[index].sum() % 2)}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        self.encoder = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.1, batch_first=True)
        self.classifier = nn.Linear(WIDTH, 2)

    def forward(self, input_ids, attention_mask, labels=None):
        hidden = self.encoder(self.embeddings(input_ids), src_key_padding_mask=~attention_mask)
        logits = self.classifier(hidden[:, 0])
        return {"loss": None if labels is None else F.cross_entropy(logits, labels), "logits": logits}


def get_dataloaders(batch_size):
    def collate_fn(examples):
        ids = nn.utils.rnn.pad_sequence([one["input_ids"] for one in examples], batch_first=True)
        labels = torch.tensor([one["labels"] for one in examples])
        return {"input_ids": ids, "attention_mask": ids != 0, "labels": labels}

    train = DataLoader(Pairs(640, 1), shuffle=True, collate_fn=collate_fn, batch_size=batch_size, drop_last=True)
    return train, DataLoader(Pairs(90, 2), shuffle=False, collate_fn=collate_fn, batch_size=EVAL_BATCH_SIZE)


def linear_schedule_with_warmup(optimizer, warmup, steps):
    return LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warmup) * max(0.0, (steps - step) / steps))


def evaluate(accelerator, model, eval_dataloader):
    model.eval()
    right, seen = 0, 0
    for batch in eval_dataloader:
        with torch.no_grad():
            outputs = model(**batch)
        predictions = outputs["logits"].argmax(dim=-1)
        predictions, references = accelerator.gather_for_metrics((predictions, batch["labels"]))
        right, seen = right + (predictions == references).sum().item(), seen + len(references)
    model.train()
    return right / seen


def training_function(config, args):
    accelerator = Accelerator(mixed_precision=args.mixed_precision,
                              gradient_accumulation_steps=args.gradient_accumulation_steps, project_dir=args.output_dir)
    set_seed(config["seed"])
    train_dataloader, eval_dataloader = get_dataloaders(config["batch_size"])
    pretrained = os.path.join(args.output_dir, "pretrained.bin")
    if accelerator.is_main_process:
        os.makedirs(args.output_dir, exist_ok=True)
        torch.save(Classifier().state_dict(), pretrained)
    accelerator.wait_for_everyone()

    model = Classifier()
    model.load_state_dict(torch.load(pretrained))
    model = model.to(accelerator.device)
    optimizer = AdamW(params=model.parameters(), lr=config["lr"])
    steps = len(train_dataloader) * config["num_epochs"] // args.gradient_accumulation_steps
    lr_scheduler = linear_schedule_with_warmup(optimizer, 10, steps)
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler)

    overall_step, starting_epoch = 0, 0
    if args.resume_from_checkpoint:
        accelerator.print(f"Resumed from checkpoint: {args.resume_from_checkpoint}")
        accelerator.load_state(args.resume_from_checkpoint)
        starting_epoch = int(args.resume_from_checkpoint.rsplit("_", 1)[1]) + 1

    for epoch in range(starting_epoch, config["num_epochs"]):
        model.train()
        total_loss = 0
        for step, batch in enumerate(train_dataloader):
            batch = {name: value.to(accelerator.device) for name, value in batch.items()}
            with accelerator.accumulate(model):
                outputs = model(**batch)
                loss = outputs["loss"]
                total_loss += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            overall_step += 1
            if overall_step % args.checkpointing_steps == 0:
                accelerator.wait_for_everyone()
                if accelerator.is_main_process:
                    accelerator.save(accelerator.unwrap_model(model).state_dict(),
                                     os.path.join(args.output_dir, f"step_{overall_step}.bin"))
        accuracy = evaluate(accelerator, model, eval_dataloader)
        mean_loss = total_loss.item() / len(train_dataloader)
        accelerator.print(f"epoch {epoch}: accuracy {accuracy:.3f}, loss {mean_loss:.4f}")
        accelerator.save_state(os.path.join(args.output_dir, f"epoch_{epoch}"))
    accelerator.end_training()


def main():
    parser = argparse.ArgumentParser(description="Simple example of training script.")
    parser.add_argument("--mixed_precision", choices=["no", "fp16", "bf16"])
    parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
    parser.add_argument("--checkpointing_steps", type=int, default=8)
    parser.add_argument("--resume_from_checkpoint")
    parser.add_argument("--output_dir", default="out")
    training_function({"lr": 1e-3, "num_epochs": 3, "seed": 42, "batch_size": MAX_GPU_BATCH_SIZE}, parser.parse_args())


if __name__ == "__main__":
    main()
