package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

var (
	//go:embed containerd.toml
	containerdTOML string
	//go:embed kubelet.yaml
	kubeletYAML string
	//go:embed bridge.conflist
	bridgeConflist string
)

// nodeConfig has the values for the templates above.
type nodeConfig struct {
	Dir, Bin, Name, Bridge, PauseImage, TLS string
	Pods, Gateway, DNS, KubeletPort         string
}

// makeNodeDir mounts the node's directory at a path that is short enough for
// sockets, whatever the length of the cluster's path.
func (p *plan) makeNodeDir() error {
	real := filepath.Join(p.cluster.Dir, "node")
	visible := p.cluster.claim.nodeDir()
	for _, dir := range []string{real, visible} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := bind(real, visible); err != nil {
		return err
	}
	if err := p.cluster.claim.makeCgroups(); err != nil {
		return err
	}
	config := nodeConfig{
		Dir: visible, Bin: p.bin, Name: p.node(), Bridge: p.cluster.claim.bridge(),
		PauseImage: p.pauseImage(), TLS: p.identity.dir,
		Pods: p.network.pods.String(), Gateway: p.network.gateway().String(), DNS: p.network.dns().String(),
		KubeletPort: p.kubelet,
	}
	files := map[string]string{
		"containerd.toml":     containerdTOML,
		"kubelet.yaml":        kubeletYAML,
		"cni/bridge.conflist": bridgeConflist,
	}
	if err := os.MkdirAll(filepath.Join(visible, "cni"), 0o700); err != nil {
		return err
	}
	for name, text := range files {
		parsed, err := template.New(name).Parse(text)
		if err != nil {
			return err
		}
		var filled bytes.Buffer
		if err := parsed.Execute(&filled, config); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(visible, name), filled.Bytes(), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) startContainerd(ctx context.Context) error {
	start := time.Now()
	dir := p.cluster.claim.nodeDir()
	if err := p.spawn("containerd", "containerd", "--config", filepath.Join(dir, "containerd.toml")); err != nil {
		return err
	}
	err := p.await(ctx, "containerd", func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, "containerd.sock"))
		if err != nil {
			return err
		}
		return connection.Close()
	})
	if err != nil {
		return err
	}
	p.done("containerd", start)
	return nil
}

// startKubelet returns when pods can be scheduled to the node.
func (p *plan) startKubelet(ctx context.Context) error {
	start := time.Now()
	dir := p.cluster.claim.nodeDir()
	err := p.spawn("kubelet", "kubelet",
		"--config="+filepath.Join(dir, "kubelet.yaml"), "--root-dir="+filepath.Join(dir, "kubelet"),
		"--kubeconfig="+p.identity.path("kubelet.kubeconfig"), "--cert-dir="+filepath.Join(dir, "kubelet", "pki"),
		"--hostname-override="+p.node(), "--node-ip="+p.network.gateway().String())
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(p.cluster.Config)
	if err != nil {
		return err
	}
	since := start.Truncate(time.Second) // the precision of a heartbeat
	takesPods := func(event watch.Event) bool { return takesPods(event, since) }
	if err := p.see(ctx, "kubelet", p.node(), clients.CoreV1().Nodes().Watch, takesPods); err != nil {
		return err
	}
	p.done(fmt.Sprintf("kubelet, node %s", p.node()), start)
	return nil
}

// takesPods reports whether the node has reported after since that it is ready,
// and the node lifecycle controller has removed the taint of new nodes.
func takesPods(event watch.Event, since time.Time) bool {
	node, ok := event.Object.(*corev1.Node)
	if !ok || len(node.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && !condition.LastHeartbeatTime.Time.Before(since)
		}
	}
	return false
}
