"""Contrastive audio and text: a CNN over mel spectrograms against a small BERT, with a learned temperature."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertModel


class Clips(Dataset):
    def __len__(self):
        return 640

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(160000, generator=g), torch.randint(1000, 30000, (40,), generator=g)


class ConvBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o)
        self.c2, self.b2 = nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o)

    def forward(self, x, pool=2):
        x = F.relu_(self.b1(self.c1(x)))
        x = F.relu_(self.b2(self.c2(x)))
        return F.avg_pool2d(x, pool)


class Audio(nn.Module):
    def __init__(self, dim=512):
        super().__init__()
        self.register_buffer("window", torch.hann_window(1024))
        self.register_buffer("bank", torch.rand(513, 64) / 513)
        self.bn0 = nn.BatchNorm2d(64)
        widths = (1, 64, 128, 256, 512, 1024)
        self.blocks = nn.ModuleList(ConvBlock(i, o) for i, o in zip(widths, widths[1:]))
        self.fc = nn.Linear(1024, dim)

    def forward(self, wave):
        with torch.no_grad(), torch.autocast("cuda", enabled=False):
            spec = torch.stft(wave, 1024, 320, window=self.window, return_complex=True).abs().pow(2)
            mel = torch.log(spec.transpose(1, 2) @ self.bank + 1e-6)
        x = self.bn0(mel.unsqueeze(1).transpose(1, 3)).transpose(1, 3)
        for block in self.blocks:
            x = F.dropout(block(x), 0.2, self.training)
        x = x.mean(3)
        return self.fc(x.amax(2) + x.mean(2))


device = "cuda"
audio = Audio().to(device)
text = BertModel(BertConfig(num_hidden_layers=6, hidden_size=512, num_attention_heads=8, intermediate_size=2048), add_pooling_layer=False).to(device)
project = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).to(device)
scale = nn.Parameter(torch.tensor(2.66, device=device))
params = [*audio.parameters(), *text.parameters(), *project.parameters()]
opt = torch.optim.AdamW([{"params": params, "weight_decay": 0.01}, {"params": [scale], "weight_decay": 0.0}], lr=1e-4)
scaler = torch.amp.GradScaler("cuda")
loader = DataLoader(Clips(), batch_size=32, shuffle=True, drop_last=True, num_workers=2)
for epoch in range(3):
    for step, (wave, ids) in enumerate(loader):
        wave, ids = wave.to(device), ids.to(device)
        with torch.autocast("cuda", dtype=torch.float16):
            a = F.normalize(audio(wave), dim=-1)
            t = F.normalize(project(text(ids).last_hidden_state[:, 0]), dim=-1)
            logits = scale.exp() * a.float() @ t.float().T
            target = torch.arange(len(a), device=device)
            loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        with torch.no_grad():
            scale.clamp_(0, 4.6)
        if step % 10 == 0:
            print(epoch, step, loss.item())
