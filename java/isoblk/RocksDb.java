// SPDX-License-Identifier: GPL-2.0-only
package isoblk;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.CompressionType;
import org.rocksdb.FlushOptions;
import org.rocksdb.InfoLogLevel;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteOptions;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * RocksDB as YCSB's database.
 *
 * <p>A record is one value, below its key: for each field the length of the name, the name, the
 * length of the value, the value; lengths are 32 bits, big-endian. So an update, which brings some
 * of the fields, reads the record and writes it anew. YCSB's tables are not told apart: its
 * workloads have one.
 *
 * <p>YCSB makes one object for each of its threads; they share the open database, which is closed
 * with the last of them.
 *
 * <p>Properties, needed but for the last:
 *
 * <ul>
 *   <li>isoblk.dir: the database's directory.
 *   <li>isoblk.cache: bytes of RocksDB's block cache.
 *   <li>isoblk.buffer: bytes of one memtable, and of the files that they become.
 *   <li>isoblk.direct: whether data goes past the page cache. The log never does.
 *   <li>isoblk.sync: whether a write ends when the log is on the disk.
 *   <li>isoblk.jobs: threads that flush and compact.
 *   <li>isoblk.settle: whether to wait, at the end, until nothing is left to flush or compact.
 * </ul>
 */
public final class RocksDb extends DB {
  private static final int LEVEL1_FILES = 4; // RocksDB's own ratio of level 1 to a file
  private static final long POLL_MS = 10;

  // RocksDB splits its cache by a hash of a number that it draws for every database. What fits
  // into a part would be luck, and no two runs alike; undivided, the cache is what it says.
  private static final int ONE_SHARD = 0; // bits of the hash

  // All under the class's lock, but for the calls of db, which takes care of itself.
  private static RocksDB db;
  private static Options options;
  private static LRUCache cache;
  private static WriteOptions writeOptions;
  private static int users;

  @Override
  public void init() throws DBException {
    synchronized (RocksDb.class) {
      if (users == 0) {
        try {
          open(getProperties());
        } catch (RocksDBException e) {
          throw new DBException("cannot open the database: " + e.getMessage(), e);
        }
      }
      users++;
    }
  }

  private static void open(Properties properties) throws DBException, RocksDBException {
    RocksDB.loadLibrary();
    long buffer = Long.parseLong(needed(properties, "isoblk.buffer"));
    boolean direct = Boolean.parseBoolean(needed(properties, "isoblk.direct"));
    cache = new LRUCache(Long.parseLong(needed(properties, "isoblk.cache")), ONE_SHARD);
    options =
        new Options()
            .setCreateIfMissing(true)
            // YCSB's values are random letters: compressing them costs time and saves nothing.
            .setCompressionType(CompressionType.NO_COMPRESSION)
            .setWriteBufferSize(buffer)
            .setTargetFileSizeBase(buffer)
            .setMaxBytesForLevelBase(LEVEL1_FILES * buffer)
            .setMaxBackgroundJobs(Integer.parseInt(needed(properties, "isoblk.jobs")))
            .setUseDirectReads(direct)
            .setUseDirectIoForFlushAndCompaction(direct)
            .setInfoLogLevel(InfoLogLevel.WARN_LEVEL)
            // What RocksDB does by the clock, and not because of the load.
            .setStatsDumpPeriodSec(0)
            .setStatsPersistPeriodSec(0)
            .setTableFormatConfig(new BlockBasedTableConfig().setBlockCache(cache));
    writeOptions =
        new WriteOptions().setSync(Boolean.parseBoolean(needed(properties, "isoblk.sync")));
    db = RocksDB.open(options, needed(properties, "isoblk.dir"));
  }

  private static String needed(Properties properties, String name) throws DBException {
    String value = properties.getProperty(name);
    if (value == null) {
      throw new DBException("missing property " + name);
    }
    return value;
  }

  @Override
  public void cleanup() throws DBException {
    synchronized (RocksDb.class) {
      users--;
      if (users > 0) {
        return;
      }
      try {
        if (Boolean.parseBoolean(getProperties().getProperty("isoblk.settle"))) {
          settle();
        }
        db.closeE();
      } catch (RocksDBException e) {
        throw new DBException("cannot close the database: " + e.getMessage(), e);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } finally {
        writeOptions.close();
        options.close();
        cache.close();
      }
    }
  }

  private static void settle() throws RocksDBException, DBException, InterruptedException {
    try (FlushOptions wait = new FlushOptions().setWaitForFlush(true)) {
      db.flush(wait);
    }
    while (db.getLongProperty("rocksdb.compaction-pending") != 0
        || db.getLongProperty("rocksdb.num-running-compactions") != 0) {
      // What failed stays pending.
      if (db.getLongProperty("rocksdb.background-errors") != 0) {
        throw new DBException("cannot compact the database: see its file LOG");
      }
      Thread.sleep(POLL_MS);
    }
  }

  @Override
  public Status read(
      String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      byte[] record = db.get(bytes(key));
      if (record == null) {
        return Status.NOT_FOUND;
      }
      decode(record, fields, result);
      return Status.OK;
    } catch (RocksDBException e) {
      return failed("read", e);
    }
  }

  @Override
  public Status scan(
      String table,
      String startKey,
      int count,
      Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    try (RocksIterator iterator = db.newIterator()) {
      iterator.seek(bytes(startKey));
      for (int i = 0; i < count && iterator.isValid(); i++) {
        HashMap<String, ByteIterator> record = new HashMap<>();
        decode(iterator.value(), fields, record);
        result.add(record);
        iterator.next();
      }
      iterator.status();
      return Status.OK;
    } catch (RocksDBException e) {
      return failed("scan", e);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    try {
      byte[] old = db.get(bytes(key));
      if (old == null) {
        return Status.NOT_FOUND;
      }
      Map<String, ByteIterator> record = new LinkedHashMap<>();
      decode(old, null, record);
      record.putAll(values);
      db.put(writeOptions, bytes(key), encode(record));
      return Status.OK;
    } catch (RocksDBException e) {
      return failed("update", e);
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    try {
      db.put(writeOptions, bytes(key), encode(values));
      return Status.OK;
    } catch (RocksDBException e) {
      return failed("insert", e);
    }
  }

  @Override
  public Status delete(String table, String key) {
    try {
      db.delete(writeOptions, bytes(key));
      return Status.OK;
    } catch (RocksDBException e) {
      return failed("delete", e);
    }
  }

  private static Status failed(String what, RocksDBException e) {
    System.err.println("RocksDB: " + what + ": " + e.getMessage());
    return Status.ERROR;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] encode(Map<String, ByteIterator> values) {
    Map<byte[], byte[]> fields = new LinkedHashMap<>();
    int size = 0;
    for (Map.Entry<String, ByteIterator> field : values.entrySet()) {
      byte[] name = bytes(field.getKey());
      byte[] value = field.getValue().toArray();
      fields.put(name, value);
      size += 2 * Integer.BYTES + name.length + value.length;
    }
    ByteBuffer record = ByteBuffer.allocate(size);
    for (Map.Entry<byte[], byte[]> field : fields.entrySet()) {
      record.putInt(field.getKey().length).put(field.getKey());
      record.putInt(field.getValue().length).put(field.getValue());
    }
    return record.array();
  }

  private static void decode(byte[] data, Set<String> wanted, Map<String, ByteIterator> result) {
    ByteBuffer record = ByteBuffer.wrap(data);
    while (record.hasRemaining()) {
      String name = new String(next(record), StandardCharsets.UTF_8);
      byte[] value = next(record);
      if (wanted == null || wanted.contains(name)) {
        result.put(name, new ByteArrayByteIterator(value));
      }
    }
  }

  private static byte[] next(ByteBuffer record) {
    byte[] bytes = new byte[record.getInt()];
    record.get(bytes);
    return bytes;
  }
}
