import argparse, os, torch, torch.nn as nn, torch.nn.functional as F, torch.multiprocessing as mp, torch.optim as optim
from torch.utils.data import TensorDataset, DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.conv1 = nn.Conv2d(1, 10, 5); self.conv2 = nn.Conv2d(10, 20, 5); self.d = nn.Dropout2d(); self.fc1 = nn.Linear(320, 50); self.fc2 = nn.Linear(50, 10)
    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2)); x = F.relu(F.max_pool2d(self.d(self.conv2(x)), 2)); x = x.view(-1, 320)
        return F.log_softmax(self.fc2(F.dropout(F.relu(self.fc1(x)), training=self.training)), dim=1)
def train(rank, args, model, device, dataset, kw):
    torch.manual_seed(args.seed + rank)
    loader = DataLoader(dataset, **kw); optimizer = optim.SGD(model.parameters(), lr=.01, momentum=.5)
    for epoch in range(1, 3):
        model.train(); pid = os.getpid()
        for batch_idx, (data, target) in enumerate(loader):
            optimizer.zero_grad(); output = model(data.to(device)); loss = F.nll_loss(output, target.to(device)); loss.backward(); optimizer.step()
            if batch_idx % 10 == 0: print('{}\tLoss: {:.6f}'.format(pid, loss.item()))
if __name__ == '__main__':
    p = argparse.ArgumentParser(); p.add_argument('--num-processes', type=int, default=2); p.add_argument('--seed', type=int, default=1); args = p.parse_args()
    device = torch.device('cuda')
    mp.set_start_method('spawn', force=True)
    model = Net().to(device); model.share_memory()
    ds = TensorDataset(torch.rand(600, 1, 28, 28), torch.randint(0, 10, (600,)))
    kw = {'batch_size': 64, 'shuffle': True, 'num_workers': 1, 'pin_memory': True}
    procs = []
    for rank in range(args.num_processes):
        pr = mp.Process(target=train, args=(rank, args, model, device, ds, kw)); pr.start(); procs.append(pr)
    for pr in procs: pr.join()
