"""What hosts cost the operator, which instances that cost is for, and the margin. Tenants see none of it."""
