"""Fine-tune a GPT-2 on prompts and answers with the Trainer, where the loss is that of the answers:
torchrun --nproc_per_node 2 run_clm.py --output_dir out --do_train --do_eval --bf16 ..."""

import logging
import math
import os
import sys
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
import transformers
from torch.utils.data import DataLoader, Dataset
from transformers import (GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainerCallback, TrainingArguments,
                          set_seed)
from transformers.trainer_utils import get_last_checkpoint

logger = logging.getLogger(__name__)


@dataclass
class ModelArguments:
    n_layer: int = field(default=2, metadata={"help": "Blocks of the model."})
    n_embd: int = field(default=32, metadata={"help": "Width of the model."})
    dropout: float = field(default=0.0)


@dataclass
class DataTrainingArguments:
    block_size: int = field(default=32, metadata={"help": "The most tokens of a prompt and its answer."})
    max_train_samples: int = field(default=400)
    max_eval_samples: int = field(default=32)
    vocabulary: int = field(default=64)
    new_tokens: int = field(default=4, metadata={"help": "The last tokens of the vocabulary are new to the model."})


class Answers(Dataset):
    """Prompts whose labels are ignored, and answers, of different lengths."""

    def __init__(self, count, seed, args):
        draw = torch.Generator().manual_seed(seed)
        self.rows = [torch.randint(args.vocabulary, (args.block_size,), generator=draw) for _ in range(count)]
        self.prompts = torch.randint(4, args.block_size - 4, (count,), generator=draw).tolist()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        ids = self.rows[index]
        labels = ids.clone()
        labels[:self.prompts[index]] = -100
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


class NewTokens(TrainerCallback):
    """Draws the embeddings of tokens that the pretrained model doesn't know, and watches the loss of validation."""

    def __init__(self, count, steps):
        self.count, self.steps, self.trainer = count, steps, None

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        with torch.no_grad():
            model.transformer.wte.weight[-self.count:].normal_(std=0.02)

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.steps == 0:
            metrics = self.trainer.evaluate()
            if state.is_world_process_zero:
                logger.info("step %d: loss of validation %.4f", state.global_step, metrics["eval_loss"])


class AnswerTrainer(Trainer):
    """A mean over the tokens of all answers of the batch, on all ranks."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logits, targets = outputs.logits[:, :-1], labels[:, 1:]
        reduction = "mean" if num_items_in_batch is None else "sum"
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)).float(), targets.reshape(-1), ignore_index=-100,
                               reduction=reduction)
        if num_items_in_batch is not None:
            loss = loss / num_items_in_batch
            if self.args.average_tokens_across_devices:
                loss = loss * self.accelerator.num_processes
        return (loss, {"loss": loss, "logits": outputs.logits}) if return_outputs else loss

    def get_train_dataloader(self):
        loader = DataLoader(self.train_dataset, batch_size=self.args.per_device_train_batch_size, shuffle=True,
                            collate_fn=self.data_collator, drop_last=True)
        return self.accelerator.prepare(loader)


def preprocess_logits_for_metrics(logits, labels):
    return (logits[0] if isinstance(logits, tuple) else logits).argmax(dim=-1)


def compute_metrics(eval_preds):
    preds, labels = eval_preds
    preds, labels = preds[:, :-1].reshape(-1), labels[:, 1:].reshape(-1)
    return {"accuracy": float((preds == labels)[labels != -100].mean())}


def main():
    parser = HfArgumentParser((ModelArguments, DataTrainingArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    logging.basicConfig(format="%(levelname)s %(message)s", handlers=[logging.StreamHandler(sys.stdout)])
    logger.setLevel(training_args.get_process_log_level())
    transformers.utils.logging.set_verbosity_warning()
    logger.warning("Process rank %s, device %s, distributed training: %s", training_args.process_index,
                   training_args.device, training_args.parallel_mode.value == "distributed")
    last_checkpoint = None
    if os.path.isdir(training_args.output_dir) and training_args.do_train:
        last_checkpoint = get_last_checkpoint(training_args.output_dir)
    set_seed(training_args.seed)

    with training_args.main_process_first(desc="making the data"):
        train_dataset = Answers(data_args.max_train_samples, 1, data_args)
        eval_dataset = Answers(data_args.max_eval_samples, 2, data_args)
    config = GPT2Config(vocab_size=data_args.vocabulary, n_positions=data_args.block_size, n_embd=model_args.n_embd,
                        n_layer=model_args.n_layer, n_head=4, resid_pdrop=model_args.dropout, bos_token_id=0,
                        embd_pdrop=model_args.dropout, attn_pdrop=model_args.dropout, eos_token_id=0, use_cache=False)
    model = GPT2LMHeadModel(config)
    logger.info("%.2fM parameters", sum(p.numel() for p in model.parameters()) / 2**20)

    callback = NewTokens(data_args.new_tokens, 4)
    trainer = AnswerTrainer(model=model, args=training_args, train_dataset=train_dataset, eval_dataset=eval_dataset,
                            compute_metrics=compute_metrics, callbacks=[callback],
                            preprocess_logits_for_metrics=preprocess_logits_for_metrics)
    callback.trainer = trainer
    if training_args.do_train:
        result = trainer.train(resume_from_checkpoint=last_checkpoint)
        trainer.save_model()
        trainer.log_metrics("train", {**result.metrics, "train_samples": len(train_dataset)})
        trainer.save_state()
    if training_args.do_eval:
        metrics = trainer.evaluate()
        trainer.log_metrics("eval", {**metrics, "perplexity": math.exp(metrics["eval_loss"])})


if __name__ == "__main__":
    main()
