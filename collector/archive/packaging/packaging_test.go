package packaging_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/archive/packaging"
)

func walk(t *testing.T, path string) (visited map[string]string, skipped []string, err error) {
	t.Helper()
	visited = map[string]string{}
	err = packaging.Walk(t.Context(), path, func(name string, _ int64, content io.Reader) error {
		text, err := io.ReadAll(content)
		visited[name] = string(text)
		return err
	}, func(name, _ string) { skipped = append(skipped, name) })
	return visited, skipped, err
}

func TestTarOfXZ(t *testing.T) {
	visited, _, err := walk(t, "testdata/two-files.tar.xz")
	var bases []string
	for name := range visited {
		bases = append(bases, filepath.Base(name))
	}
	slices.Sort(bases)
	if diff := cmp.Diff([]string{"timestamp", "version"}, bases); err != nil || diff != "" {
		t.Errorf("%v; -want, +got:\n%s", err, diff)
	}
}

// Entries that are not files of the archive are not read.
func TestHostileTar(t *testing.T) {
	var packed bytes.Buffer
	into := tar.NewWriter(&packed)
	for _, header := range []tar.Header{
		{Name: "../outside", Typeflag: tar.TypeReg},
		{Name: "link", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink},
		{Name: "hard", Linkname: "link", Typeflag: tar.TypeLink},
		{Name: "/absolute", Typeflag: tar.TypeReg},
		{Name: "./a/b", Typeflag: tar.TypeReg},
		{Name: "pipe", Typeflag: tar.TypeFifo},
	} {
		if err := into.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	visited, skipped, err := walk(t, path)
	if diff := cmp.Diff([]string{"a/b", "absolute"}, slices.Sorted(maps.Keys(visited))); err != nil || diff != "" {
		t.Errorf("%v; -want, +got:\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"../outside", "link", "hard", "pipe"}, skipped); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// A path of a zip may be anything, too.
func TestHostileZip(t *testing.T) {
	var packed bytes.Buffer
	into := zip.NewWriter(&packed)
	link := &zip.FileHeader{Name: "link"}
	link.SetMode(os.ModeSymlink)
	for _, header := range []*zip.FileHeader{{Name: "../outside"}, {Name: `a\..\..\b`}, link, {Name: "a/b"}} {
		if _, err := into.CreateHeader(header); err != nil {
			t.Fatal(err)
		}
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	visited, skipped, err := walk(t, path)
	if diff := cmp.Diff([]string{"a/b"}, slices.Sorted(maps.Keys(visited))); err != nil || diff != "" {
		t.Errorf("%v; -want, +got:\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"../outside", `a\..\..\b`, "link"}, skipped); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// largeDictionary is the begin of an xz that takes 4 GiB of memory to decompress.
func largeDictionary() string {
	const largest = 40 // of the sizes that LZMA2 has
	withSum := func(text string) string {
		return text + string(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
	}
	return "\xfd7zXZ\x00" + withSum("\x00\x04") + withSum("\x02\x00\x21\x01"+string(rune(largest))+"\x00\x00\x00") + strings.Repeat("\x01", 1024)
}

// TestBomb walks past 128 MiB that a file of 128 KiB has, without keeping it.
func TestBomb(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(file)
	into := tar.NewWriter(packed)
	zeros := make([]byte, 1<<20)
	err = into.WriteHeader(&tar.Header{Name: "log", Size: 128 << 20})
	for range 128 {
		_, writeErr := into.Write(zeros)
		err = errors.Join(err, writeErr)
	}
	if err := errors.Join(err, into.Close(), packed.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	read := int64(0)
	err = packaging.Walk(t.Context(), path, func(_ string, size int64, _ io.Reader) error {
		read += size
		return nil
	}, func(string, string) {})
	if err != nil || read != 128<<20 {
		t.Errorf("the file has %d bytes, %v", read, err)
	}
	stop := errors.New("stop")
	if err := packaging.Walk(t.Context(), path, func(string, int64, io.Reader) error { return stop }, func(string, string) {}); !errors.Is(err, stop) {
		t.Errorf("an error of the visitor ends the walk: %v", err)
	}
}

func TestDirectoryWithLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	visited, skipped, err := walk(t, dir)
	if err != nil || len(visited) > 0 || !slices.Equal(skipped, []string{"link"}) {
		t.Errorf("visited %v, skipped %v, %v", visited, skipped, err)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct{ content, err string }{
		"text":      {content: "hello", err: "neither a directory"},
		"cut.gz":    {content: "\x1f\x8b\x08\x00", err: "EOF"},
		"cut.xz":    {content: "\xfd7zXZ\x00", err: "xz"},
		"dict.xz":   {content: largeDictionary(), err: "dictionary size"},
		"cut.zip":   {content: "PK\x03\x04", err: "zip"},
		"empty.tar": {content: strings.Repeat("\x00", 100), err: "neither a directory"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := walk(t, path); err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got error %v, want %q", name, err, tc.err)
		}
	}
	if _, _, err := walk(t, filepath.Join(dir, "missing")); !os.IsNotExist(err) && err == nil {
		t.Errorf("a path that does not exist: %v", err)
	}
}

func FuzzWalk(f *testing.F) {
	seed, err := os.ReadFile("testdata/two-files.tar.xz")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"))
	path := filepath.Join(f.TempDir(), "a")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = packaging.Walk(t.Context(), path, func(_ string, _ int64, content io.Reader) error {
			_, err := io.Copy(io.Discard, io.LimitReader(content, 1<<20))
			return err
		}, func(string, string) {})
	})
}
