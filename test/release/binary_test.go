package release_test

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/release"
)

func TestBinaries(t *testing.T) {
	var binaries release.Binaries
	data, err := binaries.Build(t.Context(), "test/release/testdata/hello")
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP {
			t.Error("the binary requires a dynamic linker, which an image FROM scratch lacks")
		}
	}
	again, err := binaries.Build(t.Context(), "test/release/testdata/hello")
	if err != nil {
		t.Fatal(err)
	}
	if &again[0] != &data[0] {
		t.Error("compiled twice")
	}
}

func TestBinariesNamesMissingDirectory(t *testing.T) {
	var binaries release.Binaries
	_, err := binaries.Build(t.Context(), "test/release/testdata/missing")
	if err == nil || !strings.Contains(err.Error(), "testdata/missing") {
		t.Errorf("error %v, want one that names the directory", err)
	}
}
