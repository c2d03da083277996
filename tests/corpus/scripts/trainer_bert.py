import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
class Reviews(torch.utils.data.Dataset):
    def __len__(self): return 32 * 60
    def __getitem__(self, i): n = 128; return {"input_ids": torch.randint(5, 30000, (n,)), "attention_mask": torch.ones(n, dtype=torch.long), "labels": i % 2}
def metrics(p): return {"accuracy": (p.predictions.argmax(-1) == p.label_ids).mean()}
args = TrainingArguments(output_dir="out", per_device_train_batch_size=32, num_train_epochs=1, bf16=True, logging_steps=5, report_to="none", save_strategy="no", dataloader_num_workers=2, max_steps=40, warmup_steps=10)
Trainer(model=BertForSequenceClassification(BertConfig(num_labels=2)), args=args, train_dataset=Reviews(), eval_dataset=Reviews(), compute_metrics=metrics).train()
