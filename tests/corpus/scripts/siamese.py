# In the manner of pytorch/examples siamese_network/main.py: pairs drawn with numpy, a backbone run twice a step.
import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self):
        self.data = torch.rand(1000, 28, 28)
        self.targets = np.random.randint(0, 10, 1000)
        self.grouped = {i: np.where(self.targets == i)[0] for i in range(10)}

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        a = random.choice(self.grouped[random.randint(0, 9)].tolist())
        b = random.choice(self.grouped[random.randint(0, 9)].tolist())
        same = torch.tensor(float(self.targets[a] == self.targets[b]))
        return self.data[a].clone().float().unsqueeze(0), self.data[b].clone().float().unsqueeze(0), same


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
            nn.Conv2d(64, 128, 3, 2, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        self.fc = nn.Sequential(nn.Linear(256, 256), nn.ReLU(inplace=True), nn.Linear(256, 1))
        self.sigmoid = nn.Sigmoid()
        self.backbone.apply(self.init_weights)

    def init_weights(self, m):
        if isinstance(m, nn.Linear):
            torch.nn.init.xavier_uniform_(m.weight)
            m.bias.data.fill_(0.01)

    def forward_once(self, x):
        return self.backbone(x).view(x.size(0), -1)

    def forward(self, a, b):
        return self.sigmoid(self.fc(torch.cat((self.forward_once(a), self.forward_once(b)), 1)))


device = torch.device("cuda")
loader = DataLoader(Pairs(), batch_size=64, num_workers=1, pin_memory=True, shuffle=True)
model = SiameseNetwork().to(device)
optimizer = optim.Adadelta(model.parameters(), lr=1.0)
criterion = nn.BCELoss()
for epoch in range(2):
    model.train()
    for i, (a, b, targets) in enumerate(loader):
        a, b, targets = a.to(device), b.to(device), targets.to(device)
        optimizer.zero_grad()
        loss = criterion(model(a, b).squeeze(), targets)
        loss.backward()
        optimizer.step()
        print("Loss: {:.6f}".format(loss.item()))
