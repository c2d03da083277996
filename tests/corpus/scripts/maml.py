"""Model-agnostic meta-learning with second derivatives through torch.func, on few-shot images."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

WAYS, SHOTS, QUERIES, TASKS, INNER, LR = 5, 5, 15, 16, 5, 0.01


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o, affine=True, track_running_stats=False), nn.ReLU(), nn.MaxPool2d(2))


net = nn.Sequential(block(3, 64), block(64, 64), block(64, 64), block(64, 64), nn.Flatten(), nn.Linear(64 * 25, WAYS)).cuda()
meta = torch.optim.Adam(net.parameters(), lr=1e-3)


def loss_of(params, x, y):
    return F.cross_entropy(functional_call(net, params, (x,)), y)


def task(params, xs, ys, xq, yq):
    for _ in range(INNER):
        grads = grad(loss_of)(params, xs, ys)
        params = {k: p - LR * grads[k] for k, p in params.items()}
    logits = functional_call(net, params, (xq,))
    return F.cross_entropy(logits, yq), (logits.argmax(1) == yq).float().mean()


for step in range(40):
    xs, xq = torch.randn(TASKS, WAYS * SHOTS, 3, 84, 84).cuda(), torch.randn(TASKS, WAYS * QUERIES, 3, 84, 84).cuda()
    ys = torch.arange(WAYS).repeat_interleave(SHOTS).expand(TASKS, -1).cuda()
    yq = torch.arange(WAYS).repeat_interleave(QUERIES).expand(TASKS, -1).cuda()
    params = dict(net.named_parameters())
    losses, accuracies = vmap(task, in_dims=(None, 0, 0, 0, 0))(params, xs, ys, xq, yq)
    meta.zero_grad()
    losses.mean().backward()
    meta.step()
    if step % 10 == 0:
        print(step, losses.mean().item(), accuracies.mean().item())
