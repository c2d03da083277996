"""Recurrent actor-critic on image observations: 20 steps of 64 environments, then one update with GAE."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

ENVS, STEPS, ACTIONS, GAMMA, LAM = 64, 20, 6, 0.99, 0.95


class Env:
    def reset(self):
        return torch.rand(ENVS, 4, 84, 84)

    def step(self, action):
        return torch.rand(ENVS, 4, 84, 84), torch.randn(ENVS), (torch.rand(ENVS) < 0.01).float()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        self.lstm = nn.LSTMCell(512, 256)
        self.pi, self.v = nn.Linear(256, ACTIONS), nn.Linear(256, 1)

    def forward(self, x, state, mask):
        h, c = state
        h, c = self.lstm(self.conv(x), (h * mask, c * mask))
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(1), (h, c)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
agent = Agent().to(device)
opt = torch.optim.RMSprop(agent.parameters(), lr=7e-4, alpha=0.99, eps=1e-5)
env = Env()
obs, mask = env.reset().to(device), torch.ones(ENVS, 1, device=device)
state = (torch.zeros(ENVS, 256, device=device), torch.zeros(ENVS, 256, device=device))
for update in range(60):
    logps, values, rewards, masks, entropy = [], [], [], [], 0
    state = tuple(s.detach() for s in state)
    for _ in range(STEPS):
        dist, value, state = agent(obs, state, mask)
        action = dist.sample()
        obs, reward, done = env.step(action.cpu().numpy())
        obs, mask = obs.to(device), (1 - done).unsqueeze(1).to(device)
        logps.append(dist.log_prob(action))
        values.append(value)
        rewards.append(reward.to(device))
        masks.append(mask.squeeze(1))
        entropy = entropy + dist.entropy().mean()
    with torch.no_grad():
        _, last, _ = agent(obs, state, mask)
    advantage, advantages = 0, []
    following = last
    for t in reversed(range(STEPS)):
        delta = rewards[t] + GAMMA * following * masks[t] - values[t].detach()
        advantage = delta + GAMMA * LAM * masks[t] * advantage
        advantages.insert(0, advantage)
        following = values[t].detach()
    advantages, values = torch.stack(advantages), torch.stack(values)
    loss = -(torch.stack(logps) * advantages).mean() + 0.5 * F.mse_loss(values, advantages + values.detach()) - 0.01 * entropy / STEPS
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    opt.step()
    if update % 20 == 0:
        print(f"update {update} loss {loss.item():.3f}")
