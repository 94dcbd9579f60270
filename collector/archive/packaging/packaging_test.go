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
	}, func(entry packaging.Entry) { skipped = append(skipped, entry.Path) })
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

// linked is a tar with entries that are not files of it.
func linked(tb testing.TB) []byte {
	tb.Helper()
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
			tb.Fatal(err)
		}
	}
	if err := into.Close(); err != nil {
		tb.Fatal(err)
	}
	return packed.Bytes()
}

// Entries that are not files of the archive are not read.
func TestHostileTar(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, linked(t), 0o600); err != nil {
		t.Fatal(err)
	}
	visited, skipped, err := walk(t, path)
	if diff := cmp.Diff([]string{"a/b", "absolute"}, slices.Sorted(maps.Keys(visited))); err != nil || diff != "" {
		t.Errorf("%v; -want, +got:\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"outside", "link", "hard", "pipe"}, skipped); diff != "" {
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
	if diff := cmp.Diff([]string{"outside", `a\..\..\b`, "link"}, skipped); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// largeDictionary is the begin of an xz that takes 4 GiB of memory to decompress.
func largeDictionary() string {
	const largest = 40 // of the sizes that LZMA2 has
	withSum := func(text string) string {
		return text + string(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
	}
	return "\xfd7zXZ\x00" + withSum("\x00\x04") + withSum("\x02\x00\x21\x01"+string(rune(largest))+"\x00\x00\x00") + strings.Repeat("\x01",
		1024)
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
	}, func(packaging.Entry) {})
	if err != nil || read != 128<<20 {
		t.Errorf("the file has %d bytes, %v", read, err)
	}
	stop := errors.New("stop")
	if err := packaging.Walk(t.Context(), path, func(string, int64, io.Reader) error { return stop },
		func(packaging.Entry) {}); !errors.Is(err, stop) {
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

// packed is a tar of one file. Its last file has two blocks of zeros, so that a tar which is cut
// behind it looks as if it had its end mark.
func packed(tb testing.TB) []byte {
	tb.Helper()
	var content bytes.Buffer
	into := tar.NewWriter(&content)
	err := into.WriteHeader(&tar.Header{Name: "a/zeros.yaml", Size: 1024, Mode: 0o600})
	_, writeErr := into.Write(make([]byte, 1024))
	if err := errors.Join(err, writeErr, into.Close()); err != nil {
		tb.Fatal(err)
	}
	return content.Bytes()
}

// compressed is content in one member of gzip.
func compressed(tb testing.TB, content []byte) []byte {
	tb.Helper()
	var into bytes.Buffer
	member := gzip.NewWriter(&into)
	_, err := member.Write(content)
	if err := errors.Join(err, member.Close()); err != nil {
		tb.Fatal(err)
	}
	return into.Bytes()
}

// wrongSum has another checksum of its content.
func wrongSum(member []byte) []byte {
	wrong := slices.Clone(member)
	wrong[len(wrong)-8] ^= 1
	return wrong
}

// What an archive lacks that was cut off, or that is damaged, is not known.
func TestEnd(t *testing.T) {
	whole := packed(t)
	const header, content, mark = 512, 1024, 1024
	zeros := make([]byte, 10240)
	for name, tc := range map[string]struct {
		reason  string
		content []byte
		err     string
	}{
		"Whole":    {reason: "the tar has its end mark", content: whole},
		"Record":   {reason: "tar fills a record with zeros", content: slices.Concat(whole, zeros)},
		"NoMark":   {reason: "it ends between two files", content: whole[:header+content], err: "end mark of the tar is missing"},
		"HalfMark": {reason: "the mark has two blocks", content: whole[:header+content+mark/2], err: "end mark of the tar is missing"},
		"Cut":      {reason: "it ends within a file", content: whole[:header+content/2], err: "unexpected EOF"},
		"Second": {
			reason: "the files of a second tar would not be read", content: slices.Concat(whole, whole),
			err: "content follows the end mark",
		},
		"Gzip": {reason: "the checksum is right", content: compressed(t, whole)},
		"Members": {
			reason:  "programs that compress in parallel write several members",
			content: slices.Concat(compressed(t, whole[:700]), compressed(t, whole[700:])),
		},
		"GzipZeros": {reason: "GNU gzip accepts zeros at the end", content: slices.Concat(compressed(t, whole), zeros)},
		"GzipNoMark": {
			reason: "the tar was cut before it was compressed", content: compressed(t, whole[:header+content]),
			err: "end mark of the tar is missing",
		},
		"WrongSum": {
			reason: "the content is not the one that was compressed", content: wrongSum(compressed(t, whole)),
			err: "gzip: invalid checksum",
		},
		"SecondSum": {
			reason: "so is that of another member", content: slices.Concat(compressed(t, whole), wrongSum(compressed(t, zeros))),
			err: "gzip: invalid checksum",
		},
		"GzipCut": {reason: "the checksum is missing", content: compressed(t, whole)[:len(compressed(t, whole))-6], err: "unexpected EOF"},
		"GzipGarbage": {
			reason:  "what follows is neither a member nor zeros",
			content: slices.Concat(compressed(t, whole), []byte("garbage of some length")), err: "gzip: invalid header",
		},
		"GzipSecond": {
			reason: "the files of a second tar would not be read", content: slices.Concat(compressed(t, whole), compressed(t, whole)),
			err: "content follows the end mark",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a")
			if err := os.WriteFile(path, tc.content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := walk(t, path)
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), path)) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}

// The checksum of a file of a zip is verified when it is read.
// An xz has checksums of its header, its blocks, its index and its end; each is verified.
func TestWrongSumOfXZ(t *testing.T) {
	whole, err := os.ReadFile("testdata/two-files.tar.xz")
	if err != nil {
		t.Fatal(err)
	}
	const header, footer, sum = 12, 12, 8
	index := (int(binary.LittleEndian.Uint32(whole[len(whole)-8:])) + 1) * 4
	for name, at := range map[string]int{
		"Header": header - 4, "Content": len(whole) / 2, "Block": len(whole) - footer - index - sum,
		"Index": len(whole) - footer - 4, "Records": len(whole) - footer - index + 2, "Footer": len(whole) - footer,
	} {
		t.Run(name, func(t *testing.T) {
			wrong := slices.Clone(whole)
			wrong[at] ^= 1
			path := filepath.Join(t.TempDir(), "a.tar.xz")
			if err := os.WriteFile(path, wrong, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := walk(t, path); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWrongSumOfZip(t *testing.T) {
	var content bytes.Buffer
	into := zip.NewWriter(&content)
	file, err := into.CreateHeader(&zip.FileHeader{Name: "a.yaml", Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write([]byte("kind: Node"))
	if err := errors.Join(err, into.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(path, bytes.Replace(content.Bytes(), []byte("Node"), []byte("Mode"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := walk(t, path); !errors.Is(err, zip.ErrChecksum) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
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
	whole := packed(f)
	for _, content := range [][]byte{
		whole, whole[:1536], whole[:700], slices.Concat(whole, whole), compressed(f, whole),
		compressed(f, whole)[:60], wrongSum(compressed(f, whole)), linked(f),
	} {
		f.Add(content)
	}
	path := filepath.Join(f.TempDir(), "a")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = packaging.Walk(t.Context(), path, func(_ string, _ int64, content io.Reader) error {
			_, err := io.Copy(io.Discard, io.LimitReader(content, 1<<20))
			return err
		}, func(packaging.Entry) {})
	})
}
