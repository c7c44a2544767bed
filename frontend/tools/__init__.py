"""Programs of mxc's that other programs run by their files' paths, as MXNet has them in a folder of this name."""
