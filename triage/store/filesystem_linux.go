package store

import "syscall"

// networkFileSystem names the file system of a directory when it is one whose locks SQLite cannot trust.
func networkFileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "" // Opening the file will tell.
	}
	// The numbers are those of statfs(2).
	switch uint32(s.Type) { //nolint:gosec // Magic numbers have 32 bits.
	case 0x6969:
		return "NFS"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x01021997:
		return "9P"
	case 0x00c36400:
		return "CephFS"
	case 0x0bd00bd0:
		return "Lustre"
	default:
		return ""
	}
}
