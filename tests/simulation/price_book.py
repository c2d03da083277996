"""The price books of the simulation: as text for the server, and as a `Price` for the oracle.

All amounts are in micro-units. `off` is the first long-term discount in percent.
"""

from tests.simulation.oracle import Price


def text(gpu: int, part: int, minimum: int, off: int) -> str:
    return f"""
- from: 2020-01-01
  currency: USD
  gpu: {{V100: {gpu / 10**6:.6f}/hour, A100: {gpu / 10**5:.6f}/month}}
  vcpu: {part / 10**6:.6f}/hour
  ram: {part / 10**6:.6f}/month
  disk: {part / 10**5:.6f}/month
  snapshot: {part / 10**6:.6f}/month
  egress: {3 * part / 10**6:.6f}
  regions:
    north:
      gpu: {{V100: {gpu // 2 / 10**6:.6f}/hour}}
      disk: {7 * part / 10**6:.6f}/month
      egress: {part / 10**6:.6f}
  minimum: {minimum} s
  spot: 60%
  monthly: 30%
  refund: 50%
  reserved: {{1 year: 25%}}
  upfront: 5%
  long-term: {{2 days: {off}%, 5 days: {min(100, off + 9)}%}}
  tax: {{VAT: 20%}}
"""


def price(from_us: int, gpu: int, part: int, minimum: int, off: int) -> Price:
    units = {"V100": 730 * gpu, "A100": 10 * gpu, "vcpu": 730 * part, "ram": part, "disk": 10 * part,
             "snapshot": part, "egress": 3 * part, "north/V100": 730 * (gpu // 2), "north/disk": 7 * part,
             "north/egress": part}  # fmt: skip
    discounts = ((2, off * 100), (5, min(100, off + 9) * 100))
    return Price(from_us=from_us, units=units, minimum_us=minimum * 10**6, long_term=discounts)
