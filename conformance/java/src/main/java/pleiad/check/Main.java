package pleiad.check;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Uses the operations of the official Java client against a server, and says what came back wrong. Variables:
 * ACCOUNT_HOST, ACCOUNT_KEY, ACCOUNT_READ_ONLY_KEY, CONNECTION_MODE, gateway or direct, and SECTIONS, names separated by
 * commas (all of them without). Exit code 1 when a check failed.
 */
public final class Main {
    public static void main(String[] arguments) {
        Map<String, Check.Action> sections = new LinkedHashMap<>();
        sections.put("catalog", Catalog::run);
        sections.put("items", Items::run);
        sections.put("ids", Items::ids);
        sections.put("patch", Patch::run);
        sections.put("batch", Batches::batch);
        sections.put("bulk", Batches::bulk);
        sections.put("queries", Queries::run);
        sections.put("paging", Paging::run);
        sections.put("changefeed", ChangeFeed::run);
        sections.put("processor", ChangeFeed::processor);
        sections.put("scripts", Scripts::run);
        sections.put("access", Access::run);
        sections.put("splits", Splits::run);
        String asked = System.getenv().getOrDefault("SECTIONS", String.join(",", sections.keySet()));
        List<String> names = Arrays.asList(asked.split(","));
        if (!sections.keySet().containsAll(names)) {
            System.err.println("there are only the sections " + String.join(", ", sections.keySet()));
            System.exit(2);
        }
        sections.forEach((name, section) -> {
            if (names.contains(name)) {
                Check.setUp(name, section);
            }
        });
        System.out.printf("%d passed, %d failed%n", Check.passed, Check.failed);
        // The client keeps threads alive; without this the process would wait for them.
        System.exit(Check.failed == 0 ? 0 : 1);
    }
}
