# In the manner of torchvision's RegNet: the constructor computes widths and rates with CPU tensors.
import torch
from torch import nn

widths = (torch.arange(4) * 36.0 + 24).div(8, rounding_mode="floor").mul(8).int().tolist()
rates = [each.item() for each in torch.linspace(0, 0.1, 4)]
pairs = zip([3, *widths], widths, rates)
layers = [nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.Dropout(rate)) for a, b, rate in pairs]
net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(4):
    loss = net(torch.randn(8, 3, 32, 32).cuda()).logsumexp(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
