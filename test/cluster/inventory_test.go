package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/test/cluster"
)

// owner identifies what belongs to a cluster on this machine. Other clusters may
// reuse a name meanwhile, so everything is compared together with the number that
// the kernel has assigned to it.
type owner struct {
	dir  string
	node string // names the cgroup, the nftables table and, without the dash, the bridge
}

func ownerOf(t *testing.T, c *cluster.Cluster) owner {
	t.Helper()
	nodes, err := clients(t, c).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := owner{dir: c.Dir, node: "none"}
	for _, node := range nodes.Items {
		o.node = node.Name
	}
	return o
}

// things returns everything of the cluster on this machine, by kind.
func (o owner) things(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"process":     o.processes(t),
		"mount":       o.mounts(t),
		"interface":   o.links(t),
		"nftables":    o.tables(t),
		"cgroup":      o.cgroups(t),
		"log symlink": o.logs(t),
		"CNI result":  glob(t, "/var/lib/cni/results/"+o.node+"-*"),
	}
}

// still returns the things that still exist.
func (o owner) still(t *testing.T, things map[string][]string) []string {
	t.Helper()
	now := make(map[string]bool)
	for _, list := range o.things(t) {
		for _, thing := range list {
			now[thing] = true
		}
	}
	var left []string
	for kind, list := range things {
		for _, thing := range list {
			if now[thing] {
				left = append(left, kind+" "+thing)
			}
		}
	}
	return left
}

func (o owner) processes(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, dir := range glob(t, "/proc/[0-9]*") {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ")) // empty if the process has ended
		cgroup, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		mine := bytes.Contains(environ, []byte("="+o.dir+"\x00")) && !bytes.Contains(environ, []byte(starterDir))
		if err == nil && (mine || bytes.Contains(cgroup, []byte("/"+o.node+"/"))) {
			// proc_pid_stat(5): the 22nd field is the time of the start.
			found = append(found, strings.Fields(string(stat))[21]+" "+commandLine(dir))
		}
	}
	return found
}

func commandLine(proc string) string {
	line, _ := os.ReadFile(filepath.Join(proc, "cmdline")) // for messages; empty for a zombie
	return filepath.Base(proc) + " " + strings.ReplaceAll(string(line), "\x00", " ")
}

func (o owner) mounts(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	place := "/run/preflight-cluster/" + strings.TrimPrefix(o.node, "preflight-")
	var found []string
	for line := range strings.Lines(string(data)) {
		point := strings.Fields(line)[4]
		if strings.HasPrefix(point+"/", place+"/") || strings.HasPrefix(point, o.dir+"/") {
			found = append(found, line)
		}
	}
	return found
}

func (o owner) links(t *testing.T) []string {
	t.Helper()
	bridge := "/sys/class/net/" + strings.ReplaceAll(o.node, "-", "")
	var found []string
	for _, link := range append(glob(t, bridge+"/brif/*/.."), glob(t, bridge)...) {
		index, err := os.ReadFile(filepath.Join(link, "ifindex"))
		if err == nil {
			found = append(found, link+" "+string(index))
		}
	}
	return found
}

func (o owner) tables(t *testing.T) []string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "nft", "--handle", "list", "ruleset").Output()
	if err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "table ip "+o.node+" ") { // ends with the table's handle
			found = append(found, line)
		}
	}
	return found
}

func (o owner) cgroups(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, dir := range append(glob(t, "/sys/fs/cgroup/*/"+o.node), glob(t, "/sys/fs/cgroup/"+o.node)...) {
		info, err := os.Stat(dir)
		if err != nil {
			continue // removed meanwhile
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			found = append(found, fmt.Sprintf("%s inode %d", dir, stat.Ino))
		}
	}
	return found
}

// logs returns the kubelet's links to the logs of this cluster's pods.
func (o owner) logs(t *testing.T) []string {
	t.Helper()
	place := "/run/preflight-cluster/" + strings.TrimPrefix(o.node, "preflight-") + "/"
	var found []string
	for _, link := range glob(t, "/var/log/containers/*.log") {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, place) {
			found = append(found, link)
		}
	}
	return found
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
