// Package e2e_test holds the product against a real cluster with real pods, a
// real registry and real signatures.
package e2e_test

import (
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
)

// What the tests of this package share.
var (
	local *cluster.Cluster
	// program is oc-preflight, as somebody would have built it.
	program string
	root    string
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) {
		local = c
		if err := build(); err != nil {
			log.Fatal(err)
		}
	})
}

func build() (err error) {
	if root, err = filepath.Abs("../.."); err != nil {
		return err
	}
	program = filepath.Join(local.Dir, "bin", "oc-preflight")
	compile := exec.Command("go", "build", "-o", program, "./cmd/oc-preflight")
	compile.Dir, compile.Stderr = root, os.Stderr
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	return compile.Run()
}
