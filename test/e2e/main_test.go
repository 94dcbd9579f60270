// Package e2e_test holds the product against a real cluster with real pods, a
// real registry and real signatures.
package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
)

// local is the cluster that the tests of this package share.
var local *cluster.Cluster

// root is the root of the repository.
const root = "../.."

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c })
}

// program is oc-preflight, built once, as somebody would build it.
var program = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs(filepath.Join(local.Dir, "bin", "oc-preflight"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", path, "./cmd/oc-preflight")
	build.Dir, build.Stderr = root, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return path, build.Run()
})
