// PostgreSQL's JDBC driver: statements, batches, cursors, COPY and DatabaseMetaData.

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.net.URI;
import java.sql.*;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.*;
import org.postgresql.PGConnection;

public class Jdbc {
    interface Check {
        void run(Connection connection) throws Exception;
    }

    static final Map<String, Check> FEATURES = new LinkedHashMap<>();

    static {
        FEATURES.put("schema", Jdbc::createSchema);
        FEATURES.put("values", Jdbc::checkValues);
        FEATURES.put("prepared statements", Jdbc::checkPrepared);
        FEATURES.put("batches", Jdbc::checkBatches);
        FEATURES.put("generated keys", Jdbc::checkGeneratedKeys);
        FEATURES.put("fetch size", Jdbc::checkFetchSize);
        FEATURES.put("transactions and savepoints", Jdbc::checkTransactions);
        FEATURES.put("errors", Jdbc::checkErrors);
        FEATURES.put("query timeout", Jdbc::checkTimeout);
        FEATURES.put("CopyManager", Jdbc::checkCopy);
        FEATURES.put("ResultSetMetaData", Jdbc::checkResultMetaData);
        FEATURES.put("updatable results", Jdbc::checkUpdatable);
        FEATURES.put("getTables", Jdbc::checkTables);
        FEATURES.put("getColumns", Jdbc::checkColumns);
        FEATURES.put("getPrimaryKeys", Jdbc::checkPrimaryKeys);
        FEATURES.put("getIndexInfo", Jdbc::checkIndexInfo);
        FEATURES.put("getImportedKeys, getExportedKeys", Jdbc::checkForeignKeys);
        FEATURES.put("getSchemas, getCatalogs, getTableTypes", Jdbc::checkSchemas);
        FEATURES.put("getTypeInfo", Jdbc::checkTypeInfo);
        FEATURES.put("getTablePrivileges", Jdbc::checkPrivileges);
        FEATURES.put("getFunctions, getProcedures, getUDTs, getSQLKeywords", Jdbc::checkOthers);
    }

    static void createSchema(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("create table author (id serial primary key, name varchar(80) not null)");
            statement.execute("create table book (isbn char(13) primary key, author_id int references author (id)"
                + " on delete cascade, title text not null default 'none', price numeric(8, 2), tags text[])");
            statement.execute("create unique index book_title on book (author_id, title desc)");
            statement.execute("create view cheap as select isbn from book where price < 10");
            statement.execute("comment on column book.title is 'what it is called'");
        }
    }

    static void checkValues(Connection connection) throws SQLException {
        String query = "select ?::int, ?::bigint, ?::numeric, ?::text, ?::bytea, ?::date, ?::timestamptz, ?::boolean,"
            + " ?::float8, ?::uuid, ?::int[]";
        Object[] given = {
            7, -5L, new BigDecimal("1.50"), "é\\'", new byte[] {0, -1}, LocalDate.of(2024, 2, 29),
            OffsetDateTime.parse("2024-01-01T12:00:00Z"), true, 0.1, UUID.fromString("00000000-0000-0000-0000-000000000007"),
            connection.createArrayOf("int4", new Integer[] {1, null, 3})};
        // Beyond the fifth run the driver prepares by name and asks for binary values.
        for (int run = 0; run < 7; run++) {
            try (PreparedStatement statement = connection.prepareStatement(query)) {
                for (int i = 0; i < given.length; i++) {
                    statement.setObject(i + 1, given[i]);
                }
                ResultSet rows = statement.executeQuery();
                expect(rows.next(), true);
                expect(rows.getInt(1), 7);
                expect(rows.getLong(2), -5L);
                expect(rows.getBigDecimal(3), given[2]);
                expect(rows.getString(4), given[3]);
                expect(Arrays.toString(rows.getBytes(5)), "[0, -1]");
                expect(rows.getObject(6, LocalDate.class), given[5]);
                expect(rows.getObject(7, OffsetDateTime.class).toInstant(), ((OffsetDateTime) given[6]).toInstant());
                expect(rows.getBoolean(8), true);
                expect(rows.getDouble(9), 0.1);
                expect(rows.getObject(10), given[9]);
                expect(Arrays.toString((Object[]) rows.getArray(11).getArray()), "[1, null, 3]");
            }
        }
    }

    static void checkPrepared(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("select ? + 1")) {
            for (int n = 0; n < 12; n++) {
                statement.setInt(1, n);
                ResultSet rows = statement.executeQuery();
                rows.next();
                expect(rows.getInt(1), n + 1);
            }
        }
    }

    static void checkBatches(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("insert into author (name) values (?)")) {
            for (int n = 0; n < 100; n++) {
                statement.setString(1, "author " + n);
                statement.addBatch();
            }
            expect(Arrays.stream(statement.executeBatch()).sum(), 100);
        }
        expect(ask(connection, "select count(*) from author"), "100");
    }

    static void checkGeneratedKeys(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(
                "insert into author (name) values (?)", Statement.RETURN_GENERATED_KEYS)) {
            statement.setString(1, "keyed");
            statement.executeUpdate();
            ResultSet keys = statement.getGeneratedKeys();
            keys.next();
            expect(keys.getInt("id"), 101);
        }
    }

    static void checkFetchSize(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(50);
            ResultSet rows = statement.executeQuery("select x from generate_series(1, 1000) as s(x)");
            int sum = 0;
            while (rows.next()) {
                sum += rows.getInt(1);
            }
            expect(sum, 500_500);
        } finally {
            connection.rollback();
            connection.setAutoCommit(true);
        }
    }

    static void checkTransactions(Connection connection) throws SQLException {
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        expect(connection.getTransactionIsolation(), Connection.TRANSACTION_SERIALIZABLE);
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.execute("insert into author (id, name) values (1000, 'kept')");
            Savepoint point = connection.setSavepoint("point");
            statement.execute("insert into author (id, name) values (1001, 'lost')");
            connection.rollback(point);
            connection.commit();
        } finally {
            connection.setAutoCommit(true);
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        }
        expect(ask(connection, "select count(*) from author where id >= 1000"), "1");
        connection.setReadOnly(true);
        connection.setReadOnly(false);
    }

    static void checkErrors(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("insert into book (isbn, author_id) values ('1', 5555)");
            throw new AssertionError("no error");
        } catch (org.postgresql.util.PSQLException error) {
            expect(error.getSQLState(), "23503");
            expect(error.getServerErrorMessage().getConstraint(), "book_author_id_fkey");
        }
    }

    static void checkTimeout(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            statement.executeQuery("select count(*) from generate_series(1, 100000000) a(x), generate_series(1, 1000) b(y)");
            throw new AssertionError("not cancelled");
        } catch (SQLException error) {
            expect(error.getSQLState(), "57014");
        }
        expect(ask(connection, "select 1"), "1");
    }

    static void checkCopy(Connection connection) throws Exception {
        var manager = connection.unwrap(PGConnection.class).getCopyAPI();
        expect(manager.copyIn("copy book (isbn, title) from stdin csv", new StringReader("x,\"a,b\"\ny,c\n")), 2L);
        StringWriter out = new StringWriter();
        manager.copyOut("copy (select title from book order by title) to stdout csv", out);
        expect(out.toString(), "\"a,b\"\nc\n");
    }

    static void checkResultMetaData(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            ResultSetMetaData data = statement.executeQuery("select isbn, price, tags, author_id as a from book")
                .getMetaData();
            expect(data.getColumnTypeName(1) + data.getPrecision(1), "bpchar13");
            expect(data.getColumnTypeName(2) + data.getPrecision(2) + "." + data.getScale(2), "numeric8.2");
            expect(data.getColumnTypeName(3), "_text");
            expect(data.getTableName(1) + "." + data.getColumnName(4), "book.a");
            expect(data.isNullable(1), ResultSetMetaData.columnNoNulls);
        }
    }

    static void checkUpdatable(Connection connection) throws SQLException {
        try (Statement statement =
                connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            ResultSet rows = statement.executeQuery("select isbn, title from book where isbn = 'y'");
            rows.first();
            rows.updateString("title", "changed");
            rows.updateRow();
        }
        expect(ask(connection, "select title from book where isbn = 'y'"), "changed");
    }

    static void checkTables(Connection connection) throws SQLException {
        expect(list(connection.getMetaData().getTables(null, "public", "%", new String[] {"TABLE", "VIEW", "SEQUENCE"}),
            "TABLE_NAME", "TABLE_TYPE"), "author_id_seq SEQUENCE, author TABLE, book TABLE, cheap VIEW");
    }

    static void checkColumns(Connection connection) throws SQLException {
        DatabaseMetaData data = connection.getMetaData();
        expect(list(data.getColumns(null, "public", "book", "%"), "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "NULLABLE"),
            "isbn bpchar 13 0, author_id int4 10 1, title text 2147483647 0, price numeric 8 1, tags _text 2147483647 1");
        expect(list(data.getColumns(null, "public", "book", "title"), "COLUMN_DEF", "REMARKS"),
            "'none'::text what it is called");
        expect(list(data.getColumns(null, "public", "author", "id"), "TYPE_NAME", "IS_AUTOINCREMENT"), "serial YES");
    }

    static void checkPrimaryKeys(Connection connection) throws SQLException {
        expect(list(connection.getMetaData().getPrimaryKeys(null, null, "book"), "COLUMN_NAME", "PK_NAME"),
            "isbn book_pkey");
    }

    static void checkIndexInfo(Connection connection) throws SQLException {
        expect(list(connection.getMetaData().getIndexInfo(null, "public", "book", false, false),
                "INDEX_NAME", "COLUMN_NAME", "NON_UNIQUE", "ASC_OR_DESC"),
            "book_pkey isbn f A, book_title author_id f A, book_title title f D");
    }

    static void checkForeignKeys(Connection connection) throws SQLException {
        DatabaseMetaData data = connection.getMetaData();
        expect(list(data.getImportedKeys(null, "public", "book"), "PKTABLE_NAME", "FKCOLUMN_NAME", "DELETE_RULE"),
            "author author_id " + DatabaseMetaData.importedKeyCascade);
        expect(list(data.getExportedKeys(null, "public", "author"), "FKTABLE_NAME", "FK_NAME"),
            "book book_author_id_fkey");
    }

    static void checkSchemas(Connection connection) throws SQLException {
        DatabaseMetaData data = connection.getMetaData();
        expect(list(data.getSchemas(), "TABLE_SCHEM").contains("public"), true);
        expect(list(data.getCatalogs(), "TABLE_CAT").contains("seachange"), true);
        expect(list(data.getTableTypes(), "TABLE_TYPE").contains("MATERIALIZED VIEW"), true);
        expect(connection.getSchema(), "public");
    }

    static void checkTypeInfo(Connection connection) throws SQLException {
        String found = list(connection.getMetaData().getTypeInfo(), "TYPE_NAME");
        for (String name : new String[] {"int4", "numeric", "timestamptz", "jsonb", "uuid", "bytea"}) {
            expect(Arrays.asList(found.split(", ")).contains(name), true);
        }
    }

    static void checkPrivileges(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("create role reader");
            statement.execute("grant select on book to reader");
        }
        String found = list(connection.getMetaData().getTablePrivileges(null, "public", "book"), "GRANTEE", "PRIVILEGE");
        expect(found.contains("reader SELECT"), true);
    }

    static void checkOthers(Connection connection) throws SQLException {
        DatabaseMetaData data = connection.getMetaData();
        list(data.getFunctions(null, "public", "%"), "FUNCTION_NAME");
        list(data.getProcedures(null, "public", "%"), "PROCEDURE_NAME");
        list(data.getUDTs(null, "public", "%", null), "TYPE_NAME");
        list(data.getBestRowIdentifier(null, "public", "book", DatabaseMetaData.bestRowSession, true), "COLUMN_NAME");
        list(data.getColumnPrivileges(null, "public", "book", "%"), "PRIVILEGE");
        expect(data.getSQLKeywords().isEmpty(), false);
        expect(data.getMaxColumnNameLength(), 63);
    }

    static String ask(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(query)) {
            rows.next();
            return rows.getString(1);
        }
    }

    static String list(ResultSet rows, String... columns) throws SQLException {
        StringJoiner found = new StringJoiner(", ");
        while (rows.next()) {
            StringJoiner row = new StringJoiner(" ");
            for (String column : columns) {
                row.add(rows.getString(column));
            }
            found.add(row.toString());
        }
        return found.toString();
    }

    static void expect(Object found, Object wanted) {
        if (!Objects.equals(found, wanted)) {
            throw new AssertionError(found + " in place of " + wanted);
        }
    }

    static String quote(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\s+", " ") + '"';
    }

    public static void main(String[] arguments) throws Exception {
        URI given = new URI(arguments[0]);
        String[] user = given.getUserInfo().split(":");
        String url = "jdbc:postgresql://" + given.getHost() + ":" + given.getPort() + given.getPath();
        for (var feature : FEATURES.entrySet()) {
            String problem = "";
            try (Connection connection = DriverManager.getConnection(url, user[0], user[1])) {
                feature.getValue().run(connection);
            } catch (Exception | AssertionError failure) {
                failure.printStackTrace();
                problem = failure.toString();
            }
            String shown = problem.substring(0, Math.min(300, problem.length()));
            System.out.println("{\"feature\": " + quote(feature.getKey()) + ", \"problem\": " + quote(shown) + "}");
        }
    }
}
