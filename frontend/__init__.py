"""mxc runs Apache MXNet programs and models. Use it as `import mxc as mx`."""
