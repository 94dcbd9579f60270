package newcomer_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// publish writes the SDK of the working tree to the directory proxy, in the layout
// of a module proxy: https://go.dev/ref/mod#goproxy-protocol.
func publish(t *testing.T, proxy, source string) {
	t.Helper()
	dir := filepath.Join(proxy, filepath.FromSlash(sdk), "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	gomod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": `{"Version":"` + version + `","Time":"2026-01-31T10:00:00Z"}`,
		version + ".mod":  string(gomod),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	pack(t, archive, os.DirFS(source))
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

// pack writes the archive of a module, with all files under module@version/.
func pack(t *testing.T, archive *os.File, source fs.FS) {
	t.Helper()
	writer := zip.NewWriter(archive)
	err := fs.WalkDir(source, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := fs.ReadFile(source, file)
		if err != nil {
			return err
		}
		w, err := writer.Create(sdk + "@" + version + "/" + file)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}
