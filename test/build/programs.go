package build

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const (
	// toolsDir is the module that pins the programs of the local cluster.
	toolsDir = "test/tools"
	// kubernetes is the module that has the components of the control plane.
	kubernetes = "k8s.io/kubernetes"
)

// Demo returns the steps that build what `make demo` runs.
func Demo(root string) ([]Step, error) {
	version, err := kubernetesVersion(root)
	if err != nil {
		return nil, err
	}
	return []Step{{
		Name: "containerd, CNI plugins and registry", Dir: toolsDir, Pinned: true, About: time.Minute,
		Packages: []string{
			"github.com/containerd/containerd/v2/cmd/containerd",
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containernetworking/plugins/plugins/ipam/host-local",
			"github.com/containernetworking/plugins/plugins/main/bridge",
			"github.com/containernetworking/plugins/plugins/main/loopback",
			"github.com/google/go-containerregistry/cmd/crane",
		},
		Tags: []string{"no_btrfs", "no_devmapper", "no_rdt", "no_tracing", "no_zfs"},
	}, {
		Name: "Kubernetes and etcd", Dir: toolsDir, Pinned: true, About: 6 * time.Minute,
		Packages: []string{
			"k8s.io/kubernetes/cmd/kube-controller-manager",
			"k8s.io/kubernetes/cmd/kube-apiserver",
			"k8s.io/kubernetes/cmd/kubelet",
			"k8s.io/kubernetes/cmd/kube-scheduler",
			"k8s.io/kubernetes/cmd/kubectl",
			"go.etcd.io/etcd/server/v3",
		},
		Variables: versionVariables(version),
	}, {
		Name: "Prometheus", Dir: toolsDir, Pinned: true, About: time.Minute,
		Packages: []string{"github.com/prometheus/prometheus/cmd/prometheus"},
		Tags:     []string{"remove_all_sd"},
	}, {
		Name: "oc-preflight and the demos", Dir: ".", About: 20 * time.Second,
		Packages: []string{"./cmd/oc-preflight", "./test/cluster/pause", "./test/story/demo", "./test/story/controller-demo"},
	}}, nil
}

// Tests returns the steps that build what the tests run besides the programs of
// the demo.
func Tests() []Step {
	return []Step{{
		Name: "kwok", Dir: toolsDir, Pinned: true, About: 30 * time.Second,
		Packages: []string{"sigs.k8s.io/kwok/cmd/kwok"},
	}}
}

// kubernetesVersion is the version that test/tools pins, for example v1.37.1.
func kubernetesVersion(root string) (string, error) {
	file := filepath.Join(root, toolsDir, "go.mod")
	data, err := os.ReadFile(file) //nolint:gosec // the repository's own file
	if err != nil {
		return "", err
	}
	parsed, err := modfile.Parse(file, data, nil)
	if err != nil {
		return "", err
	}
	for _, require := range parsed.Require {
		if require.Mod.Path == kubernetes {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", file, kubernetes)
}

// versionVariables make the components report their version, which is
// v0.0.0-master otherwise.
func versionVariables(version string) []string {
	const prefix = "k8s.io/component-base/version."
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	return []string{prefix + "gitVersion=" + version, prefix + "gitMajor=" + major, prefix + "gitMinor=" + minor}
}
