// Empty on purpose: a package with an assembly file may declare functions without bodies, which kubelet.go links to.
