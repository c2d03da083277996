"""Predicts the next ten frames of moving digits with three layers of ConvLSTM."""
import torch
import torch.nn as nn


class Cell(nn.Module):
    def __init__(self, i, h, k=5):
        super().__init__()
        self.h, self.conv = h, nn.Conv2d(i + h, 4 * h, k, padding=k // 2)

    def forward(self, x, state):
        h, c = state
        i, f, o, g = torch.split(self.conv(torch.cat([x, h], 1)), self.h, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


class ConvLSTM(nn.Module):
    def __init__(self, widths=(64, 64, 64)):
        super().__init__()
        self.cells = nn.ModuleList(Cell(i, o) for i, o in zip((16, *widths), widths))
        self.inp, self.out = nn.Conv2d(1, 16, 3, 1, 1), nn.Conv2d(widths[-1], 1, 1)

    def forward(self, frames, ahead):
        b, t, _, h, w = frames.shape
        states = [(frames.new_zeros(b, c.h, h, w), frames.new_zeros(b, c.h, h, w)) for c in self.cells]
        made, x = [], None
        for step in range(t + ahead - 1):
            x = frames[:, step] if step < t else made[-1]
            y = self.inp(x)
            for k, cell in enumerate(self.cells):
                states[k] = cell(y, states[k])
                y = states[k][0]
            if step >= t - 1:
                made.append(torch.sigmoid(self.out(y)))
        return torch.stack(made, 1)


model = ConvLSTM().cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
loss_fn = nn.BCELoss()
data = torch.rand(160, 20, 1, 64, 64)
for epoch in range(5):
    for k in range(0, 160, 16):
        clip = data[k : k + 16].cuda()
        pred = model(clip[:, :10], 10)
        loss = loss_fn(pred, clip[:, 10:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 10.0)
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.5f}")
