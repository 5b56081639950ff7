package recording

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"vllm-triage/promq/memstore"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// block is one TSDB block, its files in memory.
type block struct {
	index    *index.Reader
	segments [][]byte // chunk files in order
	deleted  tombstones.Reader
}

// readBlock returns the series of the block in dir. Errors name the file at fault.
func readBlock(fsys fs.FS, dir string) (_ []memstore.Series, err error) {
	// The readers check sums and bounds nearly everywhere; where they do not, a damaged file must still be an error.
	file := path.Join(dir, "index")
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read %s: corrupt: %v", file, r)
		}
	}()
	b := &block{}
	if err := checkMeta(fsys, path.Join(dir, "meta.json")); err != nil {
		return nil, err
	}
	raw, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("read block: %w", err)
	}
	if b.index, err = index.NewReader(byteSlice(raw), index.DecodePostingsRaw); err != nil {
		return nil, fmt.Errorf("read %s: corrupt: %w", file, err)
	}
	if b.segments, err = readSegments(fsys, path.Join(dir, "chunks")); err != nil {
		return nil, err
	}
	if b.deleted, err = readTombstones(fsys, path.Join(dir, tombstones.TombstonesFilename)); err != nil {
		return nil, err
	}
	file = dir
	series, err := b.series()
	if err != nil {
		return nil, fmt.Errorf("read %s: corrupt: %w", dir, err)
	}
	return series, nil
}

// checkMeta refuses a block whose layout is not the one this reader knows.
func checkMeta(fsys fs.FS, file string) error {
	raw, err := fs.ReadFile(fsys, file)
	if err != nil {
		return fmt.Errorf("read block: %w", err)
	}
	var meta struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return fmt.Errorf("read %s: corrupt: %w", file, err)
	}
	if meta.Version != 1 {
		return fmt.Errorf("read %s: block version %d is not supported, only 1", file, meta.Version)
	}
	return nil
}

func (b *block) series() ([]memstore.Series, error) {
	ctx := context.Background()
	name, value := index.AllPostingsKey()
	all, err := b.index.Postings(ctx, name, value)
	if err != nil {
		return nil, fmt.Errorf("list series in index: %w", err)
	}
	var (
		out     []memstore.Series
		builder labels.ScratchBuilder
		metas   []chunks.Meta
		it      chunkenc.Iterator
	)
	for all.Next() {
		ref := all.At()
		if err := b.index.Series(ref, &builder, &metas); err != nil {
			return nil, fmt.Errorf("read series %d of index: %w", ref, err)
		}
		builder.Sort()
		one := memstore.Series{Labels: builder.Labels()}
		gone, err := b.deleted.Get(ref)
		if err != nil {
			return nil, fmt.Errorf("read tombstones of series %d: %w", ref, err)
		}
		for _, meta := range metas {
			chunk, err := b.chunk(meta)
			if err != nil {
				return nil, fmt.Errorf("read chunk of %s: %w", one.Labels, err)
			}
			it = chunk.Iterator(it)
			if one.Samples, err = appendSamples(one.Samples, chunk.NumSamples(), it, gone); err != nil {
				return nil, fmt.Errorf("decode chunk of %s: %w", one.Labels, err)
			}
		}
		out = append(out, one)
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("list series in index: %w", err)
	}
	return out, nil
}

func appendSamples(
	to []memstore.Sample, count int, it chunkenc.Iterator, gone tombstones.Intervals,
) ([]memstore.Sample, error) {
	to = slices.Grow(to, count)
	for {
		var s memstore.Sample
		switch it.Next() {
		case chunkenc.ValNone:
			return to, it.Err()
		case chunkenc.ValFloat:
			s.At, s.Value = it.At()
		case chunkenc.ValHistogram, chunkenc.ValFloatHistogram:
			s.At, s.Hist = it.AtFloatHistogram(nil)
		}
		if (tombstones.Interval{Mint: s.At, Maxt: s.At}).IsSubrange(gone) {
			continue
		}
		to = append(to, s)
	}
}

// chunk finds a chunk in the segment files. A reference is the number of the segment and the offset in it; there stand the
// length as a varint, the encoding, the data and a checksum over the last two (tsdb/docs/format/chunks.md).
func (b *block) chunk(meta chunks.Meta) (chunkenc.Chunk, error) {
	segment, start := chunks.BlockChunkRef(meta.Ref).Unpack()
	if segment >= len(b.segments) {
		return nil, fmt.Errorf("chunk file %06d is missing", segment+1)
	}
	data := b.segments[segment]
	if start < 0 || start >= len(data) {
		return nil, fmt.Errorf("chunk file %06d ends before offset %d", segment+1, start)
	}
	length, n := binary.Uvarint(data[start:])
	rest := data[start+max(n, 0):]
	const around = chunks.ChunkEncodingSize + crc32.Size
	if n <= 0 || len(rest) < around || length > uint64(len(rest)-around) { //nolint:gosec // Not negative.
		return nil, fmt.Errorf("chunk file %06d ends inside the chunk at offset %d", segment+1, start)
	}
	end := chunks.ChunkEncodingSize + int(length) //nolint:gosec // At most the length of rest.
	if crc32.Checksum(rest[:end], castagnoli) != binary.BigEndian.Uint32(rest[end:]) {
		return nil, fmt.Errorf("chunk file %06d: wrong checksum at offset %d", segment+1, start)
	}
	return chunkenc.FromData(chunkenc.Encoding(rest[0]), rest[chunks.ChunkEncodingSize:end])
}

func readSegments(fsys fs.FS, dir string) ([][]byte, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("read block: %w", err)
	}
	var out [][]byte
	for _, e := range entries { // Sorted by name, which is a number of fixed width.
		if _, err := strconv.ParseUint(e.Name(), 10, 64); err != nil {
			continue
		}
		file := path.Join(dir, e.Name())
		raw, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, fmt.Errorf("read block: %w", err)
		}
		if len(raw) < chunks.SegmentHeaderSize || binary.BigEndian.Uint32(raw) != chunks.MagicChunks {
			return nil, fmt.Errorf("read %s: corrupt: not a chunk file", file)
		}
		out = append(out, raw)
	}
	return out, nil
}

// readTombstones reads the deletions of a block; a block without the file has none.
func readTombstones(fsys fs.FS, file string) (tombstones.Reader, error) {
	raw, err := fs.ReadFile(fsys, file)
	if errors.Is(err, fs.ErrNotExist) {
		return tombstones.NewMemTombstones(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read block: %w", err)
	}
	const magic, format = 4, 1 // bytes
	end := len(raw) - crc32.Size
	if end < magic+format || binary.BigEndian.Uint32(raw) != tombstones.MagicTombstone {
		return nil, fmt.Errorf("read %s: corrupt: not a tombstones file", file)
	}
	if crc32.Checksum(raw[magic+format:end], castagnoli) != binary.BigEndian.Uint32(raw[end:]) {
		return nil, fmt.Errorf("read %s: corrupt: wrong checksum", file)
	}
	t, err := tombstones.Decode(raw[magic:end])
	if err != nil {
		return nil, fmt.Errorf("read %s: corrupt: %w", file, err)
	}
	return t, nil
}

// byteSlice gives the index reader a file held in memory.
type byteSlice []byte

func (b byteSlice) Len() int { return len(b) }

func (b byteSlice) Range(start, end int) []byte { return b[start:end] }
