package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// subnets are the addresses of one cluster.
type subnets struct {
	pods, services netip.Prefix
}

// gateway is the node's address on the bridge, and its InternalIP.
func (s subnets) gateway() netip.Addr { return s.pods.Addr().Next() }

// api is the address of the kubernetes Service: the first of its range.
func (s subnets) api() netip.Addr { return s.services.Addr().Next() }

// dns is the name server of the pods. No server listens there.
func (s subnets) dns() netip.Addr { return s.services.Addr().Next().Next() }

// used reports whether an interface other than own has an overlapping address.
func (s subnets) used(own string) (bool, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return false, err
	}
	for _, link := range interfaces {
		addresses, err := link.Addrs()
		if err != nil || link.Name == own {
			continue // the interface was removed meanwhile
		}
		for _, address := range addresses {
			prefix, err := netip.ParsePrefix(address.String())
			if err == nil && (prefix.Overlaps(s.pods) || prefix.Overlaps(s.services)) {
				return true, nil
			}
		}
	}
	return false, nil
}

// connect creates the bridge and the route from the pods to the API server: the
// address of the Service kubernetes, which kube-proxy serves on other clusters,
// and its endpoint lead to the loopback interface. Connections to all other
// addresses of the service range are refused.
func (p *plan) connect(ctx context.Context) error {
	start := time.Now()
	bridge, gateway := p.cluster.claim.bridge(), p.network.gateway().String()
	for _, args := range [][]string{
		{"link", "add", bridge, "type", "bridge"},
		{"addr", "add", gateway + "/24", "dev", bridge},
		{"link", "set", bridge, "up"},
	} {
		if err := execute(ctx, "", "ip", args...); err != nil {
			return err
		}
	}
	// Without it the kernel drops packets from the bridge to 127.0.0.1.
	localnet := filepath.Join("/proc/sys/net/ipv4/conf", bridge, "route_localnet")
	if err := os.WriteFile(localnet, []byte("1"), 0o600); err != nil {
		return err
	}
	rules := strings.NewReplacer(
		"TABLE", p.cluster.claim.name(), "BRIDGE", bridge, "GATEWAY", gateway, "PORT", portOf(p.api),
		"SERVICES", p.network.services.String(), "SERVICE", p.network.api().String(), "API", p.api,
	).Replace(nftables)
	if err := execute(ctx, rules, "nft", "-f", "-"); err != nil {
		return err
	}
	p.done("network", start)
	return nil
}

const nftables = `
table ip TABLE {
	chain pods {
		type nat hook prerouting priority dstnat; policy accept;
		iifname "BRIDGE" ip daddr SERVICE tcp dport 443 dnat to API
		iifname "BRIDGE" ip daddr GATEWAY tcp dport PORT dnat to API
	}
	chain host {
		type nat hook output priority -100; policy accept;
		ip daddr SERVICE tcp dport 443 dnat to API
		ip daddr GATEWAY tcp dport PORT dnat to API
	}
	chain others {
		type filter hook prerouting priority filter; policy accept;
		iifname "BRIDGE" ip daddr SERVICES reject
	}
}
`

// Expose has the pods and this machine reach a server on the loopback interface of this
// machine, given as host:port, and returns the host:port of it for both. It ends with the
// cluster. A cluster without a node, and one of another process, is an error.
func (c *Cluster) Expose(ctx context.Context, server string) (string, error) {
	address, err := netip.ParseAddrPort(server)
	if err != nil || !address.Addr().IsLoopback() {
		return "", fmt.Errorf("%q is not the address and port of a server on the loopback interface", server)
	}
	if c.claim == nil {
		return "", fmt.Errorf("%q cannot be exposed: this process has started no node", server)
	}
	exposed := netip.AddrPortFrom(c.claim.subnets().gateway(), address.Port())
	rules := strings.NewReplacer(
		"TABLE", c.claim.name(), "BRIDGE", c.claim.bridge(), "GATEWAY", exposed.Addr().String(),
		"PORT", portOf(server), "SERVER", server,
	).Replace(exposing)
	return exposed.String(), execute(ctx, rules, "nft", "-f", "-")
}

const exposing = `
add rule ip TABLE pods iifname "BRIDGE" ip daddr GATEWAY tcp dport PORT dnat to SERVER
add rule ip TABLE host ip daddr GATEWAY tcp dport PORT dnat to SERVER
`

// disconnect removes everything that connect and the CNI plugins have created.
func disconnect(ctx context.Context, c *claim) error {
	if err := removeLinks(ctx, c.bridge()); err != nil {
		return err
	}
	// "destroy" accepts a missing table, but only since nftables 1.0.7.
	rules := fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\n", c.name())
	if err := execute(ctx, rules, "nft", "-f", "-"); err != nil {
		return err
	}
	// The directory of the CNI library's cache cannot be configured.
	cached, err := filepath.Glob("/var/lib/cni/results/" + c.name() + "-*")
	if err != nil {
		return err
	}
	for _, file := range cached {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeLinks removes the bridge and the pods' interfaces on it.
func removeLinks(ctx context.Context, bridge string) error {
	ports, err := filepath.Glob(filepath.Join("/sys/class/net", bridge, "brif", "*"))
	if err != nil {
		return err
	}
	links := []string{bridge}
	for _, port := range ports {
		links = append(links, filepath.Base(port))
	}
	for _, link := range links {
		// The kernel removes a pod's interface with its network namespace.
		err := execute(ctx, "", "ip", "link", "delete", link)
		if _, gone := os.Stat(filepath.Join("/sys/class/net", link)); err != nil && gone == nil {
			return err
		}
	}
	return nil
}

// execute runs a system command to its end.
func execute(ctx context.Context, input, name string, args ...string) error {
	var output bytes.Buffer
	path := locate(name, filepath.SplitList(searchPath()))
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // the commands of this package
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}
