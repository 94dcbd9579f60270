// Package results answers: which clusters of a fleet already have a result, so that they need not be read again?
//
// [Open] opens a directory with one file per cluster. A file is written atomically once the cluster is evaluated, so a
// survey that was killed continues with the other clusters. The files are trusted as far as the directory is: only its
// owner may write there.
package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/roster"
	"github.com/openshift/update-preflight/signature/localfile"
)

const (
	kind = "PreflightFleetResult"
	// maxFile bounds a file, in bytes.
	maxFile = 1 << 20
	// ahead is how far the time of a file may be in the future, since clocks differ.
	ahead = 5 * time.Minute
)

// Directory has the results of one request.
type Directory struct {
	path, request string
	maxAge        time.Duration
	now           func() time.Time
}

type stored struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Member and Request identify the subject of the result.
	Member  string    `json:"member"`
	Request string    `json:"request"`
	Time    time.Time `json:"time"`
	Row     fleet.Row `json:"row"`
}

// Open opens the directory, and creates it for its owner alone. request is equal for requests whose
// results are the same; a result older than maxAge is not used. A directory that others may write
// to is an error.
func Open(path, request string, maxAge time.Duration, now func() time.Time) (*Directory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("the directory %s belongs to another user (ID %d), who may write any result: name one "+
			"of your own", path, owner.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("other users may write to the directory %s, so its results are not reliable: run "+
			"\"chmod go-w %s\"", path, path)
	}
	return &Directory{path: path, request: request, maxAge: maxAge, now: now}, nil
}

func (d *Directory) file(member roster.Member, extension string) string {
	sum := sha256.Sum256([]byte(member.Origin()))
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, member.Cluster.Name)
	const mostName, mostSum = 60, 8
	return filepath.Join(d.path, name[:min(len(name), mostName)]+"."+hex.EncodeToString(sum[:mostSum])+extension)
}

// Known returns the row of a member from its file. It returns false if there is none, if it belongs to another request,
// another cluster or other files of an archive, if it is too old, or if its verdict has expired.
func (d *Directory) Known(member roster.Member) (fleet.Row, bool) {
	read, err := d.read(d.file(member, ".json"))
	now := d.now()
	switch {
	case err != nil, read.Member != member.Identity(), read.Request != d.request,
		member.Cluster.ID != "" && !strings.EqualFold(read.Row.Cluster.ID, member.Cluster.ID),
		now.Sub(read.Time) >= d.maxAge, read.Time.Sub(now) > ahead:
		return fleet.Row{}, false
	}
	if until, err := time.Parse(time.RFC3339, read.Row.Until); read.Row.Until != "" && (err != nil || !now.Before(until)) {
		return fleet.Row{}, false
	}
	read.Row.Evidence = "result of " + words.Time(read.Time)
	return read.Row, true
}

func (d *Directory) read(path string) (stored, error) {
	file, err := localfile.OpenRegular(path)
	if err != nil {
		return stored{}, err
	}
	text, err := localfile.ReadAll(file, maxFile+1)
	if err != nil {
		return stored{}, err
	}
	var read stored
	if err := json.Unmarshal(text, &read); err != nil || len(text) > maxFile || read.Kind != kind || read.APIVersion != report.APIVersion {
		return stored{}, errors.Join(errors.New("the file is not a result"), err)
	}
	return read, nil
}

// Keep writes the file of a member.
func (d *Directory) Keep(member roster.Member, row fleet.Row) error {
	return d.write(d.file(member, ".json"), stored{
		APIVersion: report.APIVersion, Kind: kind, Member: member.Identity(), Request: d.request, Time: d.now().UTC(), Row: row,
	})
}

// KeepReport writes the report of a member beside its result, for people.
func (d *Directory) KeepReport(member roster.Member, judged report.Report) error {
	return d.write(d.file(member, ".report.json"), judged)
}

// write replaces a file as a whole. A temporary file is for its owner alone.
func (d *Directory) write(path string, value any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	file, err := os.CreateTemp(d.path, ".result-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text.Bytes())
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return os.Rename(file.Name(), path)
}
