package site

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

const (
	// MaxArchive bounds the archive of a run, in bytes.
	MaxArchive = 64 << 10
	// maxUnpacked bounds its JSON, in which contents are base64.
	maxUnpacked = 2 * maxSources * maxTotal
)

// Archive returns the directories among the sources for the record of a run; nil if there
// are none. Images are read again by digest.
func Archive(sources []Source) ([]byte, error) {
	directories := slices.DeleteFunc(Canonical(sources), Source.IsImage)
	if len(directories) == 0 {
		return nil, nil
	}
	var packed bytes.Buffer
	compress, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(compress).Encode(directories); err != nil {
		return nil, fmt.Errorf("the checks of the site cannot be recorded: %w", err)
	}
	if err := compress.Close(); err != nil {
		return nil, err
	}
	if packed.Len() > MaxArchive {
		return nil, fmt.Errorf("the manifests of %d directories have %d bytes compressed; the limit is %d: put them into an image",
			len(directories), packed.Len(), MaxArchive)
	}
	return packed.Bytes(), nil
}

// Validate returns an error for sources that exceed the bounds or cannot be recorded.
func Validate(sources []Source) error {
	if len(sources) > maxSources {
		return fmt.Errorf("%d sources of checks of the site are more than %d", len(sources), maxSources)
	}
	for _, source := range sources {
		if err := source.validate(); err != nil {
			return err
		}
	}
	_, err := Archive(sources)
	return err
}

// Restore returns the sources with these IDs: images by their pull specs, and directories
// from the archive of a record. A directory that is missing there, or has other content, is
// an error.
func Restore(ids []string, archive []byte) ([]Source, error) {
	if len(ids) > maxSources {
		return nil, fmt.Errorf("%d sources are more than %d", len(ids), maxSources)
	}
	recorded, err := unpack(archive)
	if err != nil {
		return nil, err
	}
	sources := make([]Source, 0, len(ids))
	for _, id := range ids {
		i := slices.IndexFunc(recorded, func(source Source) bool { return !source.IsImage() && source.ID() == id })
		if i >= 0 {
			sources = append(sources, recorded[i])
			continue
		}
		image, err := Image(id)
		if err != nil {
			return nil, fmt.Errorf("the directory with the content %q is not in the record", id)
		}
		sources = append(sources, image)
	}
	return sources, Validate(sources)
}

func unpack(archive []byte) ([]Source, error) {
	if len(archive) == 0 {
		return nil, nil
	}
	if len(archive) > MaxArchive {
		return nil, fmt.Errorf("the archive of the directories has %d bytes; the limit is %d", len(archive), MaxArchive)
	}
	decompress, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("the archive of the directories: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(decompress, maxUnpacked+1))
	if err != nil {
		return nil, fmt.Errorf("the archive of the directories: %w", err)
	}
	if len(text) > maxUnpacked {
		return nil, fmt.Errorf("the archive of the directories has more than %d bytes decompressed", maxUnpacked)
	}
	var sources []Source
	if err := json.Unmarshal(text, &sources); err != nil {
		return nil, fmt.Errorf("the archive of the directories: %w", err)
	}
	return sources, nil
}
