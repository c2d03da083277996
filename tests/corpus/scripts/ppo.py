# single-file PPO, many environments stepped in numpy
import numpy as np, torch, torch.nn as nn, torch.optim as optim, time
from torch.distributions.normal import Normal
num_envs, num_steps, obs_dim, act_dim, epochs, minibatches = 16, 128, 64, 8, 4, 4
class Envs:
    def __init__(self): self.rng = np.random.default_rng(1); self.W = self.rng.standard_normal((act_dim, obs_dim)).astype(np.float32)
    def reset(self): self.s = self.rng.standard_normal((num_envs, obs_dim)).astype(np.float32); return self.s
    def step(self, a): self.s = np.tanh(self.s * 0.9 + a @ self.W); return self.s, -np.square(self.s).mean(1), self.rng.random(num_envs) < 0.01
def init(layer, std=np.sqrt(2), bias=0.0): torch.nn.init.orthogonal_(layer.weight, std); torch.nn.init.constant_(layer.bias, bias); return layer
class Agent(nn.Module):
    def __init__(self):
        super().__init__(); self.critic = nn.Sequential(init(nn.Linear(obs_dim, 256)), nn.Tanh(), init(nn.Linear(256, 256)), nn.Tanh(), init(nn.Linear(256, 1), 1.0))
        self.actor = nn.Sequential(init(nn.Linear(obs_dim, 256)), nn.Tanh(), init(nn.Linear(256, 256)), nn.Tanh(), init(nn.Linear(256, act_dim), 0.01)); self.logstd = nn.Parameter(torch.zeros(1, act_dim))
    def get_value(self, x): return self.critic(x)
    def get_action_and_value(self, x, action=None):
        mean = self.actor(x); probs = Normal(mean, torch.exp(self.logstd.expand_as(mean)))
        if action is None: action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu"); envs = Envs(); agent = Agent().to(device); optimizer = optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
obs = torch.zeros((num_steps, num_envs, obs_dim)).to(device); actions = torch.zeros((num_steps, num_envs, act_dim)).to(device); logprobs = torch.zeros((num_steps, num_envs)).to(device); rewards = torch.zeros((num_steps, num_envs)).to(device); dones = torch.zeros((num_steps, num_envs)).to(device); values = torch.zeros((num_steps, num_envs)).to(device)
next_obs = torch.Tensor(envs.reset()).to(device); next_done = torch.zeros(num_envs).to(device)
for update in range(1, 31):
    for step in range(num_steps):
        obs[step] = next_obs; dones[step] = next_done
        with torch.no_grad(): action, logprob, _, value = agent.get_action_and_value(next_obs); values[step] = value.flatten()
        actions[step] = action; logprobs[step] = logprob; o, r, d = envs.step(action.cpu().numpy()); rewards[step] = torch.tensor(r).to(device).view(-1); next_obs, next_done = torch.Tensor(o).to(device), torch.Tensor(d).to(device)
    with torch.no_grad():
        nv = agent.get_value(next_obs).reshape(1, -1); adv = torch.zeros_like(rewards).to(device); last = 0
        for t in reversed(range(num_steps)):
            nt = 1.0 - (next_done if t == num_steps - 1 else dones[t + 1]); v = nv if t == num_steps - 1 else values[t + 1]; delta = rewards[t] + 0.99 * v * nt - values[t]; adv[t] = last = delta + 0.99 * 0.95 * nt * last
        returns = adv + values
    b_obs, b_lp, b_act, b_adv, b_ret = obs.reshape(-1, obs_dim), logprobs.reshape(-1), actions.reshape(-1, act_dim), adv.reshape(-1), returns.reshape(-1)
    inds = np.arange(num_envs * num_steps); size = len(inds) // minibatches
    for epoch in range(epochs):
        np.random.shuffle(inds)
        for start in range(0, len(inds), size):
            mb = inds[start:start + size]; _, lp, ent, val = agent.get_action_and_value(b_obs[mb], b_act[mb]); ratio = (lp - b_lp[mb]).exp()
            with torch.no_grad(): kl = ((ratio - 1) - (lp - b_lp[mb])).mean(); clipfrac = ((ratio - 1.0).abs() > 0.2).float().mean().item()
            a = b_adv[mb]; a = (a - a.mean()) / (a.std() + 1e-8); pg = torch.max(-a * ratio, -a * torch.clamp(ratio, 0.8, 1.2)).mean(); vl = 0.5 * ((val.view(-1) - b_ret[mb]) ** 2).mean()
            loss = pg - 0.01 * ent.mean() + vl * 0.5; optimizer.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(agent.parameters(), 0.5); optimizer.step()
        if kl > 0.5: break
    y_pred, y_true = values.reshape(-1).cpu().numpy(), returns.reshape(-1).cpu().numpy(); var = np.var(y_true); print(update, "explained variance", np.nan if var == 0 else 1 - np.var(y_true - y_pred) / var, clipfrac)
