package fleets_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// example is a must-gather, and exampleID the ID of its cluster.
const (
	example   = "../../../examples/archive"
	exampleID = "5d1c2f04-7a3e-4f0b-9a55-0c6a7f3b9e18"
)

// BenchmarkHundredClusters judges an update of 100 clusters, each a must-gather, and measures the memory
// of the program.
func BenchmarkHundredClusters(b *testing.B) {
	program := filepath.Join(b.TempDir(), "oc-preflight")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, "..").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	dir := b.TempDir()
	const clusters = 100
	for i := range clusters {
		if err := copyOf(filepath.Join(dir, fmt.Sprintf("cluster-%03d", i)), fmt.Sprintf("%08d-4242-4242-4242-424242424242", i)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		command := exec.CommandContext(b.Context(), program, "fleet", "targets", "--archives", dir, "--to", "4.19.1", "-o", "short", "--quiet")
		out, err := command.CombinedOutput()
		if want := fmt.Sprintf("Fleet to 4.19.1: Blocked; %d clusters: %[1]d Blocked\n", clusters); string(out) != want {
			b.Fatalf("%v: %s", err, out)
		}
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			b.ReportMetric(float64(usage.Maxrss)/(1<<10), "MiB")
		}
	}
}

// copyOf writes the example with another ID of its cluster.
func copyOf(path, id string) error {
	if err := os.CopyFS(path, os.DirFS(example)); err != nil {
		return err
	}
	return filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != "clusterversions.yaml" {
			return err
		}
		content, err := os.ReadFile(name)
		return errors.Join(err, os.WriteFile(name, bytes.ReplaceAll(content, []byte(exampleID), []byte(id)), 0o600))
	})
}
