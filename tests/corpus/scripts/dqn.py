import random, math, collections, itertools, numpy as np, torch, torch.nn as nn, torch.nn.functional as F
Transition = collections.namedtuple("Transition", ("state", "action", "next_state", "reward"))
class Memory:
    def __init__(self, n): self.m = collections.deque([], maxlen=n)
    def push(self, *a): self.m.append(Transition(*a))
    def sample(self, n): return random.sample(self.m, n)
    def __len__(self): return len(self.m)
class Atari:
    def reset(self): self.t = 0; return np.random.randint(0, 255, (4, 84, 84), dtype=np.uint8)
    def step(self, a): self.t += 1; return np.random.randint(0, 255, (4, 84, 84), dtype=np.uint8), random.random(), self.t >= 50
class DQN(nn.Module):
    def __init__(self, n=6): super().__init__(); self.f = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, n))
    def forward(self, x): return self.f(x.float() / 255)
device = torch.device("cuda"); policy, target = DQN().to(device), DQN().to(device); target.load_state_dict(policy.state_dict()); opt = torch.optim.AdamW(policy.parameters(), lr=1e-4, amsgrad=True); memory = Memory(1000); done_steps = 0; B, GAMMA, TAU = 128, 0.99, 0.005
def select(s):
    global done_steps; eps = 0.05 + 0.85 * math.exp(-done_steps / 1000); done_steps += 1
    if random.random() > eps:
        with torch.no_grad(): return policy(s).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(6)]], device=device, dtype=torch.long)
def optimize():
    if len(memory) < B: return
    batch = Transition(*zip(*memory.sample(B))); keep = torch.tensor(tuple(s is not None for s in batch.next_state), device=device, dtype=torch.bool); nxt = torch.cat([s for s in batch.next_state if s is not None]); q = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action)); v = torch.zeros(B, device=device)
    with torch.no_grad(): v[keep] = target(nxt).max(1).values
    loss = nn.SmoothL1Loss()(q, (v * GAMMA + torch.cat(batch.reward)).unsqueeze(1)); opt.zero_grad(); loss.backward(); torch.nn.utils.clip_grad_value_(policy.parameters(), 100); opt.step()
env = Atari()
for episode in range(6):
    state = torch.tensor(env.reset(), device=device).unsqueeze(0)
    for t in itertools.count():
        action = select(state); o, r, terminated = env.step(action.item()); reward = torch.tensor([r], device=device, dtype=torch.float32); nxt = None if terminated else torch.tensor(o, device=device).unsqueeze(0); memory.push(state, action, nxt, reward); state = nxt; optimize(); a, b = target.state_dict(), policy.state_dict()
        for k in b: a[k] = b[k] * TAU + a[k] * (1 - TAU)
        target.load_state_dict(a)
        if terminated: break
