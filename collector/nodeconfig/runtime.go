package nodeconfig

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
)

const (
	// dropIns is the directory of CRI-O whose files the machine-config-operator reads for the default runtime
	// (pkg/controller/common/helpers.go, DetectRuncInMachineConfig, since 4.23 and 5.0).
	dropIns = "/etc/crio/crio.conf.d/"
	// maxDropIns bounds these files, and maxDropIn the content of one in bytes.
	maxDropIns, maxDropIn = 1000, 1 << 20
	// runtimeKey is the key of the default runtime.
	runtimeKey = "crio.runtime.default_runtime"
)

// runtimeName matches the name of a runtime, which is the only value of a file that is kept.
var runtimeName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

// ErrUnread is the error of a configuration of which the default runtime is not known. It does not have the cause, so that it is
// the same where the files are left out.
var ErrUnread = errors.New("a file below " + dropIns + " cannot be decoded")

// ignitionConfig are the fields of an Ignition configuration that are read. They are the same in all versions.
type ignitionConfig struct {
	Storage struct {
		Files []ignitionFile `json:"files"`
	} `json:"storage"`
}

type ignitionFile struct {
	Path     string `json:"path"`
	Contents struct {
		Source      string `json:"source"`
		Compression string `json:"compression"`
	} `json:"contents"`
}

// DefaultRuntime is the container runtime that the files of an Ignition configuration make the default of CRI-O; empty where
// none does. Of several files the last one by path counts. The error is ErrUnread.
func DefaultRuntime(ignition json.RawMessage) (string, error) {
	if !bytes.Contains(ignition, []byte("crio.conf.d")) {
		return "", nil
	}
	all, ok := filesOf(ignition)
	if !ok {
		return "", ErrUnread
	}
	files := slices.DeleteFunc(all, func(file ignitionFile) bool { return !strings.HasPrefix(file.Path, dropIns) })
	if len(files) > maxDropIns {
		return "", ErrUnread
	}
	slices.SortStableFunc(files, func(a, b ignitionFile) int { return cmp.Compare(a.Path, b.Path) })
	runtime := ""
	for _, file := range files {
		content, ok := file.content()
		if !ok {
			return "", ErrUnread
		}
		runtime = cmp.Or(runtimeOf(content), runtime)
	}
	return runtime, nil
}

// filesOf are the files of a configuration; false where it cannot be decoded.
func filesOf(ignition json.RawMessage) ([]ignitionFile, bool) {
	var config ignitionConfig
	err := kjson.UnmarshalCaseSensitivePreserveInts(ignition, &config)
	return config.Storage.Files, err == nil
}

// content decodes the data URL of a file (RFC 2397), and decompresses it; false where it cannot be decoded.
func (f ignitionFile) content() ([]byte, bool) {
	if f.Contents.Source == "" {
		return nil, true
	}
	rest, ok := strings.CutPrefix(f.Contents.Source, "data:")
	kind, data, comma := strings.Cut(rest, ",")
	text, err := url.PathUnescape(data)
	if !ok || !comma || err != nil {
		return nil, false
	}
	content := []byte(text)
	if strings.HasSuffix(kind, ";base64") {
		if content, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, false
		}
	}
	switch f.Contents.Compression {
	case "":
		return content, len(content) <= maxDropIn
	case "gzip":
		return decompress(content)
	}
	return nil, false
}

func decompress(content []byte) ([]byte, bool) {
	from, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, false
	}
	into, err := io.ReadAll(io.LimitReader(from, maxDropIn+1))
	return into, err == nil && len(into) <= maxDropIn
}

// runtimeOf is the default runtime that a file of CRI-O sets, in TOML; empty where it sets none. Only assignments of a line
// of their own are read, as all tools write them.
func runtimeOf(content []byte) string {
	table, runtime := "", ""
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if header, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ := strings.Cut(header, "]")
			table = normalKey(name)
			continue
		}
		key, value, assigned := strings.Cut(line, "=")
		if !assigned || strings.HasPrefix(line, "#") {
			continue
		}
		if normalKey(strings.Trim(table+"."+key, ".")) == runtimeKey {
			runtime = cmp.Or(quoted(value), runtime)
		}
	}
	return runtime
}

// normalKey is a key without the quotation marks and spaces that its parts may have.
func normalKey(key string) string {
	parts := strings.Split(key, ".")
	for at, part := range parts {
		parts[at] = strings.Trim(strings.TrimSpace(part), `"'`)
	}
	return strings.Join(parts, ".")
}

// quoted is the value of a string on one line; empty for another one.
func quoted(value string) string {
	value = strings.TrimSpace(value)
	if value == "" || value[0] != '"' && value[0] != '\'' {
		return ""
	}
	text, _, closed := strings.Cut(value[1:], value[:1])
	if !closed || !runtimeName.MatchString(text) {
		return ""
	}
	return text
}
