import argparse, numpy as np
from itertools import count
from collections import deque
import torch, torch.nn as nn, torch.nn.functional as F, torch.optim as optim
from torch.distributions import Categorical
class Env:
    def reset(self, seed=None): self.s = np.random.randn(4).astype(np.float32); self.t = 0; return self.s, {}
    def step(self, a):
        self.t += 1; self.s = np.random.randn(4).astype(np.float32)
        return self.s, 1.0, self.t > 20, False, {}
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 128); self.dropout = nn.Dropout(p=0.6); self.affine2 = nn.Linear(128, 2)
        self.saved_log_probs = []; self.rewards = []
    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x))); return F.softmax(self.affine2(x), dim=1)
env = Env()
policy = Policy().cuda()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()
def select_action(state):
    state = torch.from_numpy(state).float().unsqueeze(0).cuda()
    probs = policy(state); m = Categorical(probs); action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action)); return action.item()
def finish_episode():
    R = 0; policy_loss = []; returns = deque()
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R; returns.appendleft(R)
    returns = torch.tensor(returns); returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns): policy_loss.append(-log_prob * R)
    optimizer.zero_grad(); policy_loss = torch.cat(policy_loss).sum(); policy_loss.backward(); optimizer.step()
    del policy.rewards[:]; del policy.saved_log_probs[:]
def main():
    running_reward = 10
    for i_episode in count(1):
        state, _ = env.reset(); ep_reward = 0
        for t in range(1, 10000):
            action = select_action(state)
            state, reward, done, _, _ = env.step(action)
            policy.rewards.append(reward); ep_reward += reward
            if done: break
        running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
        finish_episode()
        if i_episode % 10 == 0: print('Episode {}\tLast reward: {:.2f}\tAverage reward: {:.2f}'.format(i_episode, ep_reward, running_reward))
        if running_reward > 475: break
main()
