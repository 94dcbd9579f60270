package release

import (
	"archive/tar"
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	defaultMode   = 0o644
	directoryMode = 0o755
)

// archive writes files as a tar stream: sorted, without times and owners, each directory
// before its content.
func archive(files map[string]File) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	made := map[string]bool{".": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, clean := files[name], strings.TrimPrefix(path.Clean("/"+name), "/")
		if err := writeDirectories(w, path.Dir(clean), made); err != nil {
			return nil, err
		}
		mode := file.Mode
		if mode == 0 {
			mode = defaultMode
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: clean, Mode: mode, Size: int64(len(file.Data))}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(file.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// writeDirectories writes the entries of directory and its parents that are not in
// made.
func writeDirectories(w *tar.Writer, directory string, made map[string]bool) error {
	if made[directory] {
		return nil
	}
	made[directory] = true
	if err := writeDirectories(w, path.Dir(directory), made); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: directory + "/", Mode: directoryMode})
}
