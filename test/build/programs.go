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
	// kubernetesModule has the components of the control plane.
	kubernetesModule = "k8s.io/kubernetes"
)

// Purpose is what programs are built for.
type Purpose string

// The purposes, of which each includes those before it.
const (
	// Archive is the first verdict, on an archive of a cluster: it needs oc-preflight alone.
	Archive Purpose = "archive"
	// Demo is "make demo".
	Demo Purpose = "demo"
	// ControllerDemo is "make controller-demo", which also shows commands of kubectl.
	ControllerDemo Purpose = "controller-demo"
	// Tests are the tests of every promise.
	Tests Purpose = "tests"
	// Release are the tests before a release, too.
	Release Purpose = "release"
)

// For returns the steps that build what a purpose needs.
func For(root string, purpose Purpose) ([]Step, error) {
	version, err := kubernetesVersion(root)
	if err != nil {
		return nil, err
	}
	preflight := Step{Name: "oc-preflight", Dir: ".", About: time.Minute, Packages: []string{"./cmd/oc-preflight"}}
	demos := Step{
		Name: "the demos", Dir: ".", About: 20 * time.Second,
		Packages: []string{"./test/cluster/pause", "./test/story/demo", "./test/story/controller-demo"},
	}
	steps := []Step{preflight}
	switch purpose {
	case Archive:
	case Demo:
		steps = append(steps, node(), kubernetes(version), demos)
	case ControllerDemo:
		steps = append(steps, node(), kubernetes(version), kubectl(version), demos)
	case Tests:
		steps = append(steps, node(), kubernetes(version), kubectl(version), prometheus(), kwok(), demos)
	case Release:
		steps = append(steps, node(), kubernetes(version), kubectl(version), prometheus(), kwok(), demos, clock())
	default:
		return nil, fmt.Errorf("programs for %q: want %s, %s, %s, %s or %s", purpose, Archive, Demo, ControllerDemo, Tests, Release)
	}
	return steps, nil
}

// node is what runs pods, besides the kubelet.
func node() Step {
	return Step{
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
	}
}

func kubernetes(version string) Step {
	return Step{
		Name: "Kubernetes and etcd", Dir: toolsDir, Pinned: true, About: 6 * time.Minute,
		Packages: []string{
			"k8s.io/kubernetes/cmd/kube-controller-manager",
			"k8s.io/kubernetes/cmd/kube-apiserver",
			"k8s.io/kubernetes/cmd/kubelet",
			"k8s.io/kubernetes/cmd/kube-scheduler",
			"go.etcd.io/etcd/server/v3",
		},
		Variables: versionVariables(version),
	}
}

func kubectl(version string) Step {
	return Step{
		Name: "kubectl", Dir: toolsDir, Pinned: true, About: 15 * time.Second,
		Packages: []string{"k8s.io/kubernetes/cmd/kubectl"}, Variables: versionVariables(version),
	}
}

func prometheus() Step {
	return Step{
		Name: "Prometheus", Dir: toolsDir, Pinned: true, About: time.Minute,
		Packages: []string{"github.com/prometheus/prometheus/cmd/prometheus"}, Tags: []string{"remove_all_sd"},
	}
}

func kwok() Step {
	return Step{Name: "kwok", Dir: toolsDir, Pinned: true, About: 30 * time.Second, Packages: []string{"sigs.k8s.io/kwok/cmd/kwok"}}
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
		if require.Mod.Path == kubernetesModule {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", file, kubernetesModule)
}

// versionVariables make the components report their version, which is
// v0.0.0-master otherwise.
func versionVariables(version string) []string {
	const prefix = "k8s.io/component-base/version."
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	return []string{prefix + "gitVersion=" + version, prefix + "gitMajor=" + major, prefix + "gitMinor=" + minor}
}
