# In the manner of pytorch/examples mnist_rnn/main.py.
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(input_size=28, hidden_size=64, batch_first=True)
        self.batchnorm = nn.BatchNorm1d(64)
        self.dropout1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, input):
        input = input.reshape(-1, 28, 28)
        output, hidden = self.rnn(input)
        output = output[:, -1, :]
        output = self.dropout1(self.batchnorm(output))
        return F.log_softmax(self.fc2(F.relu(self.fc1(output))), dim=1)


device = torch.device("cuda")
loader = DataLoader(
    TensorDataset(torch.rand(1000, 1, 28, 28), torch.randint(0, 10, (1000,))), batch_size=64, shuffle=True,
    num_workers=2, pin_memory=True,
)  # fmt: skip
model = Net().to(device)
optimizer = optim.Adadelta(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        print("Loss: {:.6f}".format(loss.item()))
